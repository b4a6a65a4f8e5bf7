package reader

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cause"
	"github.com/ackscope/ackscope/dissect"
)

// TestCommonCauseRests holds that scrapes compare the flows once in ten seconds at most.
func TestCommonCauseRests(t *testing.T) {
	r := &Running{Session: analyze.NewSession(analyze.Options{Registry: dissect.NewRegistry()})}
	now := time.Unix(1_700_000_000, 0)
	first := r.common.report(r, now)
	if first == nil {
		t.Fatal("the first scrape shows no comparison")
	}
	if r.common.report(r, now.Add(cause.Again-1)) != first {
		t.Error("the flows are compared again too soon")
	}
	if r.common.report(r, now.Add(cause.Again)) == first {
		t.Error("the flows are not compared again")
	}
}

package reader

import (
	"testing"

	"github.com/ackscope/ackscope/filter"
)

// A listing does without trackers where it asks for flows and decoded fields only.
func TestUntracked(t *testing.T) {
	const first = filter.NeedFlow | filter.NeedFields // what the first run tells
	for _, c := range []struct {
		needs filter.Needs
		whole bool
		want  bool
	}{
		{filter.NeedFlow, false, true},
		{first, false, true},
		{first, true, false},
		{first | filter.NeedEvents, false, false},
		{first | filter.NeedMessages, false, false},
		{first | filter.NeedFindings, false, false},
		{first | filter.NeedState, false, false},
		{first | filter.NeedFate, false, false},
	} {
		l := &Listing{Needs: c.needs, Whole: c.whole, Filter: &filter.Filter{}}
		if got := l.untracked(); got != c.want {
			t.Errorf("needs %07b, whole %v: without trackers is %v, expected %v", c.needs, c.whole, got, c.want)
		}
	}
}

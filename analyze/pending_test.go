package analyze

import (
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// fedClassifier counts what it is fed.
type fedClassifier struct {
	fed  int
	sure bool
}

func (c *fedClassifier) Reset()                   { c.fed = 0 }
func (c *fedClassifier) Feed(*machine.Datagram)   { c.fed++ }
func (c *fedClassifier) Sure() bool               { return c.sure }
func (c *fedClassifier) Verdict() dissect.Verdict { return dissect.Verdict{} }

// TestWeighLate checks when a classifier is fed that needs five datagrams to be sure. It is when there
// are five, when another one is sure, and when all verdicts count.
func TestWeighLate(t *testing.T) {
	for _, x := range []struct {
		datagrams  int
		sure, last bool
		want       int
	}{
		{4, false, false, 0}, {4, true, false, 4}, {4, false, true, 4}, {5, false, false, 5}, {5, true, false, 5},
	} {
		first, late := &fedClassifier{sure: x.sure}, &fedClassifier{}
		s := &Session{candidates: []candidate{{&dissect.Protocol{}, first, 0}, {&dissect.Protocol{}, late, 5}}}
		p := &pending{flow: &Flow{Transport: capture.UDP}}
		for range x.datagrams {
			s.held.add(&p.held, &machine.Datagram{Bytes: []byte{1}, Length: 1})
		}
		if sure := s.weigh(p, 0, x.last); sure != x.sure || first.fed != x.datagrams || late.fed != x.want {
			t.Errorf("%+v: sure is %v; the first was fed %d, the late one %d", x, sure, first.fed, late.fed)
		}
	}
}

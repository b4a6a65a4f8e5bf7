package reader

import (
	"slices"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/show"
)

// Empty finds out why a listing printed nothing.
type Empty struct {
	Of       string // what is listed: "event"
	Messages bool   // these are messages, which not every profile has
	Filtered bool   // a filter was given
	Seen     uint64 // rows that the filter was asked about
	Shown    uint64 // rows printed

	packets uint64
	known   int      // flows of a known protocol
	reasons []string // each once
}

// Add adds a recording that was read.
func (e *Empty) Add(s *analyze.Session) {
	if s == nil {
		return
	}
	e.packets += s.Packets()
	for _, f := range s.Flows() {
		if f.Protocol == nil {
			continue
		}
		e.known++
		why := ""
		if f.Protocol.Sealed != nil {
			why = f.Protocol.Sealed(f.Config())
		}
		if why == "" && e.Messages && f.Protocol.NoMessages != nil {
			why = f.Protocol.NoMessages(f.Config())
		}
		if why != "" && !slices.Contains(e.reasons, why) {
			e.reasons = append(e.reasons, why)
		}
	}
}

// Say prints why nothing was printed, on standard error. It prints nothing if
// there were rows.
func (e *Empty) Say(a *app.App) {
	if e.Shown == 0 {
		a.Remark(e.text())
	}
}

func (e *Empty) text() string {
	none := "no " + e.Of + "s: "
	switch {
	case e.Seen > 0 && e.Filtered:
		return "the filter let none of " + show.Plural(e.Seen, e.Of) + " pass"
	case e.packets == 0:
		return none + "the capture has no packets"
	case e.known == 0:
		return none + "no flow is of a protocol that ackscope knows (`ackscope flows` says why, and -d names one)"
	case len(e.reasons) > 0:
		return none + strings.Join(e.reasons, "; ")
	}
	return none + "the flows have none in " + show.Plural(e.packets, "packet")
}

package app

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Endings finds out how the connections of a protocol ended, from the records
// of a capture.
type Endings interface {
	Take(r *analyze.Record)
	// Forget drops what is kept of a flow.
	Forget(f *analyze.Flow, why analyze.Reason)
	// Ended returns the connections that had ended at a time, ordered by flow.
	Ended(at machine.Instant) []Ending
}

// Ending is how one connection ended.
type Ending struct {
	Flow   *analyze.Flow
	How    string   // in one word, as --json has it
	Silent bool     // no packet announced the end
	Failed bool     // no connection came about
	Story  []string // the sentences that describe it
	Page   func(paint show.Painter) []byte
	Object func(o *Object) // adds what only its protocol has; nil for nothing
}

// AppendFindings appends the findings of a flow, as the page of an ending lists them.
func AppendFindings(b []byte, f *analyze.Flow) []byte {
	found := f.Findings()
	if len(found) > 0 {
		b = append(b, "\n  findings:\n"...)
	}
	for i, one := range found {
		if i > 0 && one.Rule == found[i-1].Rule && one.Side == found[i-1].Side {
			continue // the same, and less sure
		}
		b = fmt.Appendf(b, "    %-5s %v  %s (%v)\n", strings.ToUpper(one.Rule.Severity.String()), one.Side, one.Rule.Summary,
			one.Certainty)
	}
	return b
}

// Undelivered describes the ICMP errors that say why a side of a flow had no answer. It returns
// "" if there are none.
func Undelivered(f *analyze.Flow, side machine.Side) string {
	u, ok := f.Undelivered(side)
	if !ok {
		return ""
	}
	said := fmt.Sprintf("(%s, such as %q, %s)", machine.Count(u.Errors, "ICMP error", "ICMP errors"), u.Reason.String(),
		u.Certainty)
	if u.Refused {
		return fmt.Sprintf("the host of %s refused its datagrams %s", strings.ToUpper(side.Other().String()), said)
	}
	return "a router or firewall did not deliver its datagrams " + said
}

package overview

import (
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// unknown stands for a figure that the capture does not show.
const unknown = "?"

// Way names the direction in which a side sends: "A→B".
func Way(s machine.Side) string {
	return strings.ToUpper(s.String()) + "→" + strings.ToUpper(s.Other().String())
}

// LossText formats the loss of a direction. The capture may bound it only: "between 3.0% and
// 11.2%".
func LossText(n *analyze.Network) string {
	least, most := n.Loss.Share()
	known := n.Share >= 0
	switch {
	case known && n.Tells && !n.Round:
		return show.Percent(n.Share)
	case least >= 0 && show.Percent(least) == show.Percent(most):
		return show.Percent(least)
	case least >= 0 && known && !n.Round && n.Share >= least && n.Share <= most:
		return "between " + show.Percent(least) + " and " + show.Percent(most) +
			" (" + n.Certain.String() + " " + show.Percent(n.Share) + ")"
	case least >= 0:
		return "between " + show.Percent(least) + " and " + show.Percent(most)
	case known && n.Round:
		return show.Percent(n.Share) + " there and back"
	case known && n.Certain == machine.Certain:
		return show.Percent(n.Share)
	case known:
		return show.Percent(n.Share) + " (" + n.Certain.String() + ")"
	}
	return unknown
}

// Millis formats a duration with its unit: "41 ms", "4.2 ms". An unknown one is "?".
func Millis(d time.Duration) string {
	switch {
	case d < 0:
		return unknown
	case d < 10*time.Millisecond:
		return show.Millis(d) + " ms"
	case d < time.Second:
		return show.Grouped(int(d.Round(time.Millisecond)/time.Millisecond)) + " ms"
	}
	return show.Wait(d)
}

// roundTrip describes the round trips of the flow: see analyze.RoundTrip.
func (f *Flow) roundTrip() string {
	if r := f.RoundTrip(); r.Mean >= 0 {
		text := "RTT "
		if r.Certainty <= machine.Possible {
			text += "at least " // the tap may stand on the way
		}
		text += Millis(r.Mean) + " on average"
		if r.P95 >= 0 {
			text += ", 95% below " + Millis(r.P95)
		}
		if r.Jitter >= 0 {
			text += "; jitter " + Millis(r.Jitter)
		}
		if r.Certainty == machine.Likely {
			text += " (likely: the tap stands on the way, and this adds the ways to both ends)"
		}
		return text
	}
	for i := range f.Sides {
		sum, ok := f.Summary(machine.Side(i))
		if ok && sum.RTT >= 0 {
			return "RTT " + Millis(sum.RTT) + " as the library of " + name(machine.Side(i)) + " estimates it"
		}
	}
	return "RTT " + unknown
}

// name is the letter of a side in texts.
func name(s machine.Side) string { return strings.ToUpper(s.String()) }

// TapText says where the capture was taken, if all flows of known protocols agree. Otherwise
// it returns "".
func TapText(flows []*analyze.Flow) string {
	near := ""
	for _, f := range flows {
		if f.Protocol == nil {
			continue
		}
		at := ""
		switch f.Facts().Vantage {
		case machine.VantageA:
			at = "captured at " + f.A.Addr().String()
		case machine.VantageB:
			at = "captured at " + f.B.Addr().String()
		case machine.VantageBoth:
			at = "captured at both ends"
		case machine.VantageBetween:
			at = "captured between the ends"
		case machine.VantageUnknown:
			continue
		}
		if near != "" && near != at {
			return ""
		}
		near = at
	}
	return near
}

// Heading describes a capture in one line: what was read, how long it is, and where it was
// taken. See TapText for that; an empty text is left out.
func Heading(name, tap string, s *analyze.Session) string {
	first, last := s.Span()
	parts := []string{
		name, show.Plural(s.Packets(), "packet"), show.SpanText(last.Sub(first)), flowsText(s),
	}
	if n := s.Duplicates(); n > 0 {
		parts = append(parts, show.Grouped(n)+" captured twice")
	}
	if tap != "" {
		parts = append(parts, tap)
	}
	missing, errors := false, uint64(0)
	for _, f := range s.Flows() {
		errors += show.Severities(f)[machine.Error]
		for _, x := range f.Findings() {
			missing = missing || x.Rule.CaptureLoss
		}
	}
	if n := s.Dropped(); n > 0 {
		parts = append(parts, "the capturing host dropped "+show.Plural(n, "packet"))
	} else if missing {
		parts = append(parts, "the capture itself lost packets")
	}
	if errors > 0 {
		parts = append(parts, show.Plural(errors, "error"))
	}
	return string(show.AppendClean(nil, strings.Join(parts, " · ")))
}

// flowsText counts the flows. If players changed their addresses, it counts the connections too.
func flowsText(s *analyze.Session) string {
	text, moved := show.Plural(s.Begun(), "flow"), uint64(0)
	for _, f := range s.Flows() {
		if f.Was != nil {
			moved++
		}
	}
	if moved > 0 {
		text += " of " + show.Plural(s.Begun()-moved, "connection")
	}
	return text
}

package show

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/dustin/go-humanize"
)

// FlowNumber returns the number of a flow, and of the one whose connection it continues: "7 (was 3)".
func FlowNumber(f *analyze.Flow) string {
	if f.Was == nil {
		return strconv.Itoa(f.ID)
	}
	return fmt.Sprintf("%d (was %d)", f.ID, f.Was.ID)
}

// WasText says which flow a flow continues, how surely, and what shows it; empty if none is known.
// For example: "A was 10.0.0.5:4242 in flow 3, likely: A's packets go on from 511 to 512".
func WasText(f *analyze.Flow) string {
	w := f.Was
	if w == nil {
		return ""
	}
	side := strings.ToUpper(w.Side.String())
	return fmt.Sprintf("%s was %s in flow %d, %s: %s", side, w.Addr, w.ID, w.Certainty, w.Reason)
}

// FlowName returns the protocol and dialect of a flow, or "–" if no protocol
// explains it.
func FlowName(f *analyze.Flow) string {
	if f.Protocol == nil {
		return "–"
	}
	return f.Protocol.Name + "/" + f.Config().Dialect
}

// VersionText says which versions a side can be, and what excludes the others. For example:
// "Riptide 2.2.0 or 2.2.1: its Acks carry no unread bits".
func VersionText(v *dissect.Versions) string {
	text := v.Text()
	if v.Proof != "" {
		text += ": " + v.Proof
	}
	if v.Mixed {
		text += "; other packets of it show another version"
	}
	if v.Doubt {
		text += "; another dialect reads its packets nearly as well"
	}
	return text
}

// Severities counts a flow's findings by severity.
func Severities(f *analyze.Flow) (n [machine.Error + 1]uint64) {
	for _, x := range f.Findings() {
		n[x.Rule.Severity]++
	}
	return n
}

// TapText names the position of the tap, in a few letters.
func TapText(f *analyze.Flow) string {
	switch v := f.Facts().Vantage; v {
	case machine.VantageA, machine.VantageB:
		return "at " + strings.ToUpper(v.String())
	case machine.VantageBoth:
		return "at both"
	case machine.VantageUnknown:
		return "?"
	default:
		return v.String()
	}
}

// SpanText formats a duration for a sentence.
func SpanText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return humanize.FtoaWithDigits(d.Seconds(), 3) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
}

// Percent formats a share from 0 to 1 as a percentage: "2.5%". A negative share
// is unknown: "–".
func Percent(v float64) string {
	if v < 0 {
		return "–"
	}
	var room [8]byte
	return string(append(strconv.AppendFloat(room[:0], 100*v, 'f', 1, 64), '%'))
}

// Millis formats a duration in milliseconds: "41.3". A negative duration is
// unknown: "–".
func Millis(d time.Duration) string {
	if d < 0 {
		return "–"
	}
	return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64)
}

// FrameList names the frames that show a finding, each once. A frame can have
// several occurrences of the finding.
func FrameList(x *analyze.Finding) string {
	var b strings.Builder
	last := machine.Ref(0)
	for _, r := range x.Refs {
		if r == last {
			continue
		}
		if last != 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, r.Frame())
		last = r
	}
	if more := x.Count - uint64(len(x.Refs)); more > 0 {
		fmt.Fprintf(&b, " and %s more", Grouped(more))
	}
	return b.String()
}

// SeverityNoun returns the noun for findings of a severity.
func SeverityNoun(s machine.Severity) string {
	if s == machine.Warn {
		return "warning"
	}
	return s.String()
}

// EventNote explains the number of an event, such as the name of a reason. It
// returns "" if there is nothing to explain.
func EventNote(f *analyze.Flow, e *machine.Event) string {
	if f.Protocol.EventNote == nil {
		return ""
	}
	return f.Protocol.EventNote(f.Config(), e)
}

// EventName returns the protocol's name of an event, or the general name.
func EventName(f *analyze.Flow, k machine.EventKind) string {
	if k < machine.EventProtocol {
		return k.String()
	}
	if name, ok := f.Protocol.EventNames[k]; ok {
		return name
	}
	return k.String()
}

func ip6Text(b []byte) string { return netip.AddrFrom16([16]byte(b)).String() }

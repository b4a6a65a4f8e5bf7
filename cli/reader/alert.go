package reader

import (
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// alerts says which findings are printed as they occur.
type alerts struct {
	rules map[string]bool
	least machine.Severity
	told  map[*analyze.Flow]map[*analyze.Finding]*alerted
}

// alerted is what the last alert of a finding told.
type alerted struct {
	at    machine.Instant // by the capture's clock
	count uint64
	refs  int // of the finding's frames
}

// alertEvery is the least time between two alerts of one finding of a flow, by
// the capture's clock.
const alertEvery = time.Second

// wants reports whether a finding should be printed at a time of the capture:
// when it first occurs, and then at most once a second. It returns what the
// last alert told, and assumes that the finding is printed.
func (x *alerts) wants(f *analyze.Finding, now machine.Instant) (before alerted, ok bool) {
	if x == nil || f.Rule.Severity < x.least && !x.rules[f.Rule.ID] {
		return before, false
	}
	last := x.told[f.Flow][f]
	if last == nil {
		if x.told == nil {
			x.told = map[*analyze.Flow]map[*analyze.Finding]*alerted{}
		}
		if x.told[f.Flow] == nil {
			x.told[f.Flow] = map[*analyze.Finding]*alerted{}
		}
		last = &alerted{}
		x.told[f.Flow][f] = last
	} else if now.Sub(last.at) < alertEvery {
		return before, false
	}
	before = *last
	*last = alerted{at: now, count: f.Count, refs: len(f.Refs)}
	return before, true
}

// forget drops what was told of a flow that has ended.
func (x *alerts) forget(f *analyze.Flow) {
	if x != nil {
		delete(x.told, f)
	}
}

// alert prints a finding as it is now. before is what the last alert of it told.
func (r *Running) alert(x *analyze.Finding, before alerted) {
	r.Screen.Clear()
	w := r.app.Writer()
	var err error
	if r.app.Flags.JSON {
		if r.rows == nil {
			r.rows = export.NewRows(export.Findings, r.app.Lines(&export.Findings.Schema))
		}
		err = r.rows.Add(&export.FindingRow{Finding: x, File: r.from.File(x.Refs[0]), Provisional: true})
	} else {
		_, err = w.Write(show.Fit(alertLine(nil, x, before, r.Reader.latest, r.paint), r.app.Width()))
	}
	if err == nil {
		err = r.app.Flush()
	}
	if err != nil && r.Err == nil {
		r.Err = err
	}
}

// alertLine formats in one line what is new of a finding at a time. Alerts stand
// in the order of these times. What happened well before has its own time: some
// rules wait for later packets.
func alertLine(b []byte, x *analyze.Finding, before alerted, now machine.Instant, paint show.Painter) []byte {
	const clock = "15:04:05.000000"
	b = now.Time().AppendFormat(b, clock)
	b = append(b, ' ', ' ')
	word := x.Rule.Severity.String()
	b = paint.Text(b, show.SeverityStyle(x.Rule.Severity), word)
	b = app.AppendBlanks(b, 7-len(word))
	b = append(paint.Text(b, show.Bold, x.Rule.ID), "  flow "...)
	b = append(b, show.Grouped(uint64(x.Flow.ID))...)
	b = append(append(b, ' '), x.Side.String()...)
	b = append(append(b, ' '), x.Flow.Addr(x.Side).String()...)
	b = append(append(append(b, "  "...), x.Certainty.String()...), ": "...)
	if before.count > 0 {
		b = append(append(b, show.Grouped(x.Count-before.count)...), " more, now "...)
	}
	b = append(b, x.Message()...)
	if now.Sub(x.Last) >= 100*time.Millisecond {
		b = x.Last.Time().AppendFormat(append(b, "; it happened at "...), clock)
	}
	if frames := newFrames(x.Refs, before.refs); frames != "" {
		b = append(append(b, "; "...), frames...)
	}
	return append(b, '\n')
}

// newFrames names the frames behind the first told ones, each once: "frame 4",
// or "frames 4, 9". A frame can show several occurrences.
func newFrames(refs []machine.Ref, told int) string {
	var list []string
	last := machine.Ref(0)
	if told > 0 {
		last = refs[told-1]
	}
	for _, r := range refs[told:] {
		if r != last {
			list = append(list, strconv.FormatUint(r.Frame(), 10))
		}
		last = r
	}
	switch len(list) {
	case 0:
		return ""
	case 1:
		return "frame " + list[0]
	}
	return "frames " + strings.Join(list, ", ")
}

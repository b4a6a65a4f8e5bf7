package reader

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// alerts says which findings are printed as they occur.
type alerts struct {
	rules   map[string]bool
	least   machine.Severity
	printed map[*analyze.Finding]machine.Instant // when each was printed last
	swept   machine.Instant
}

// alertEvery is the least time between two alerts of one finding of a flow, by
// the capture's clock.
const alertEvery = time.Second

// wants reports whether a finding should be printed now. It is printed when it
// first occurs, and then at most once a second.
func (x *alerts) wants(f *analyze.Finding) bool {
	if x == nil || f.Rule.Severity < x.least && !x.rules[f.Rule.ID] {
		return false
	}
	if f.Last.Sub(x.swept) > alertEvery {
		// Older entries need not be kept: Count shows whether a finding is new.
		for g, at := range x.printed {
			if f.Last.Sub(at) > alertEvery {
				delete(x.printed, g)
			}
		}
		x.swept = f.Last
	}
	if at, ok := x.printed[f]; ok && f.Last.Sub(at) < alertEvery {
		return false
	}
	if x.printed == nil {
		x.printed = map[*analyze.Finding]machine.Instant{}
	}
	x.printed[f] = f.Last
	return true
}

// alert prints a finding as it is now.
func (r *Running) alert(x *analyze.Finding) {
	r.Screen.Clear()
	w := r.app.Writer()
	var err error
	if r.app.Flags.JSON {
		if r.rows == nil {
			r.rows = export.NewRows(export.Findings, r.app.Lines(&export.Findings.Schema))
		}
		err = r.rows.Add(&export.FindingRow{Finding: x, File: r.from.File(x.Refs[0]), Provisional: true})
	} else {
		_, err = w.Write(show.Fit(alertLine(nil, x, r.paint), r.app.Width()))
	}
	if err == nil {
		err = r.app.Flush()
	}
	if err != nil && r.Err == nil {
		r.Err = err
	}
}

// alertLine formats a finding in one line.
func alertLine(b []byte, x *analyze.Finding, paint show.Painter) []byte {
	b = x.Last.Time().AppendFormat(b, "15:04:05.000000")
	b = append(b, ' ', ' ')
	word := x.Rule.Severity.String()
	b = paint.Text(b, show.SeverityStyle(x.Rule.Severity), word)
	b = app.AppendBlanks(b, 7-len(word))
	b = append(paint.Text(b, show.Bold, x.Rule.ID), "  flow "...)
	b = append(b, show.Grouped(uint64(x.Flow.ID))...)
	b = append(append(b, ' '), x.Side.String()...)
	b = append(append(b, ' '), x.Flow.Addr(x.Side).String()...)
	b = append(append(append(b, "  "...), x.Certainty.String()...), ": "...)
	b = append(b, x.Message()...)
	return append(append(append(b, "; frames "...), show.FrameList(x)...), '\n')
}

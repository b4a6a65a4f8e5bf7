package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/show"
)

// replayPrinter prints results.
type replayPrinter struct {
	app     *app
	paint   painter
	flags   *replayFlags
	width   int
	o       object
	sides   [3]int // by verdict
	skipped int
}

func verdictIndex(word string) int {
	return slices.Index([]string{"conforms", "consistent", "diverges"}, word)
}

func (p *replayPrinter) print(r *replayed) error {
	p.skipped += len(r.file.Skipped)
	for i := range r.file.Results {
		x := &r.file.Results[i]
		if x.Expected {
			p.sides[verdictIndex(x.Verdict())]++
		}
		var err error
		if p.app.flags.json {
			err = p.object(r, x)
		} else {
			err = p.line(r, x)
		}
		if err != nil {
			return err
		}
	}
	if p.app.flags.json {
		return nil
	}
	for _, l := range r.drift {
		if _, err := fmt.Fprintf(p.app.writer(), "  %s\n", p.paint.String(show.SeverityStyle(machine.Error), l)); err != nil {
			return err
		}
	}
	return nil
}

func (p *replayPrinter) object(r *replayed, x *replay.Result) error {
	o := &p.o
	o.begin()
	o.str("file", r.path)
	o.uint("flow", uint64(x.Flow.ID))
	o.str("protocol", x.Flow.Protocol.Name)
	o.str("dialect", x.Flow.Config().Dialect)
	o.str("side", x.Side.String())
	o.addr("addr", x.Flow.Addr(x.Side))
	o.str("behaviour", x.Behaviour)
	o.str("verdict", x.Verdict())
	o.str("vantage", x.Flow.Facts().Vantage.String())
	o.uint("packets", x.Compared)
	if x.Undecided > 0 {
		o.uint("undecided", x.Undecided)
		o.str("undecided_why", x.Why)
	}
	if d := x.Divergence; d != nil {
		o.uint("first_frame", d.Ref.Frame())
		o.time("time", d.At)
		o.str("rule", d.Rule)
		o.str("field", d.Field)
		o.str("expected", d.Expected)
		o.str("got", d.Got)
		o.str("because", d.Because)
		o.frames("frames", d.Frames)
		o.bool("absence", x.RestsOnAbsence())
		o.str("certainty", x.Certainty().String())
		o.str("reference_state", d.Reference)
		o.str("captured_state", d.Captured)
	}
	o.uint("submitted", x.Inferred.Submitted)
	o.uint("refused", x.Inferred.Refused)
	if x.Inferred.Tick > 0 {
		o.millis("tick_ms", x.Inferred.Tick)
	}
	if p.flags.matrix {
		o.bool("expected_behaviour", x.Expected)
	}
	return o.end(p.app.writer())
}

func (p *replayPrinter) line(r *replayed, x *replay.Result) error {
	w := p.app.writer()
	verdict := x.Verdict()
	style := style("")
	if x.Divergence != nil {
		style = show.SeverityStyle(machine.Error)
	}
	var note string
	switch {
	case x.Divergence != nil:
		d := x.Divergence
		note = fmt.Sprintf("frame %d: %s: %s expected %s, got %s", d.Ref.Frame(), d.Rule, d.Field, d.Expected, d.Got)
	case x.Undecided > 0:
		note = fmt.Sprintf("%s of %s could not be decided", show.Grouped(x.Undecided), show.Plural(x.Compared, "packet"))
	default:
		note = show.Plural(x.Compared, "packet")
	}
	if x.Inferred.Refused > 0 {
		note += fmt.Sprintf("; inferred: %s refused", show.Plural(x.Inferred.Refused, "packet"))
	}
	if _, err := fmt.Fprintf(w, "%s  flow %d  %s %-22s %-22s %s  %s\n", filepath.Base(r.path), x.Flow.ID,
		strings.ToUpper(x.Side.String()), x.Addr(), x.Behaviour, p.paint.String(style, fmt.Sprintf("%-10s", verdict)), note); err != nil {
		return err
	}
	d := x.Divergence
	if d == nil || !x.Expected {
		return nil
	}
	text := show.Wrap(d.Because, "    ", p.width) + "\n"
	text += "    reference: " + d.Reference + "\n    captured:  " + d.Captured + "\n"
	text += followsFrom(d.Frames)
	if x.Certainty() != machine.Certain {
		text += "    likely: a capture that lacks a packet would show the same\n"
	}
	_, err := fmt.Fprint(w, text)
	return err
}

// framesShown bounds the frames that a line lists; --json has all.
const framesShown = 12

// followsFrom lists the frames that explain a divergence.
func followsFrom(frames []machine.Ref) string {
	if len(frames) == 0 {
		return "    follows from this frame alone\n"
	}
	text := "    follows from"
	for i, f := range frames[:min(len(frames), framesShown)] {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" frame %d", f.Frame())
	}
	if more := len(frames) - framesShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "\n"
}

// done prints the summary.
func (p *replayPrinter) done(files, drifted int) error {
	if p.app.flags.json {
		return nil
	}
	w := p.app.writer()
	fmt.Fprintf(w, "%s: %s conform, %d consistent, %d diverge", show.Plural(files, "capture"), show.Plural(p.sides[0], "side"), p.sides[1], p.sides[2])
	if p.skipped > 0 {
		fmt.Fprintf(w, "; %s without a reference", show.Plural(p.skipped, "flow"))
	}
	if drifted > 0 {
		fmt.Fprintf(w, "; %s from the baseline", show.Plural(drifted, "capture")+" differ")
	}
	_, err := fmt.Fprintln(w)
	return err
}

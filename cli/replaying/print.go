package replaying

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/show"
)

// replayPrinter prints results.
type replayPrinter struct {
	app     *app.App
	paint   show.Painter
	flags   *replayFlags
	width   int
	several bool // several captures: their names are printed as they were given
	o       app.Object
	sides   [3]int // by verdict
	skipped int
	letGo   int // flows that ended early for want of memory
	drifted int // captures that differ from their baselines, and baselines without a capture
	bare    int // captures without a baseline
	bound   int // captures with a baseline
}

func verdictIndex(word string) int {
	return slices.Index([]string{"conforms", "consistent", "diverges"}, word)
}

// name returns what a capture is called.
func (p *replayPrinter) name(path string) string {
	if p.several {
		return printable.String(path)
	}
	return printable.String(filepath.Base(path))
}

func (p *replayPrinter) print(r *replayed) error {
	if r.baseline {
		p.bound++
	} else {
		p.bare++
	}
	if len(r.drift) > 0 {
		p.drifted++
	}
	p.skipped += len(r.file.Skipped)
	p.letGo += r.file.LetGo
	for i := range r.file.Results {
		x := &r.file.Results[i]
		if x.Expected {
			p.sides[verdictIndex(x.Verdict())]++
		}
		var err error
		if p.app.Flags.JSON {
			err = p.object(r, x)
		} else {
			err = p.line(r, x)
		}
		if err != nil {
			return err
		}
		if p.flags.matrix && !p.app.Flags.JSON {
			if err := p.fingerprint(r, i); err != nil {
				return err
			}
		}
	}
	for i := range r.file.Skipped {
		k := &r.file.Skipped[i]
		if err := p.aside("%s  flow %d  no verdict: %s\n", p.name(r.path), k.Flow.ID, k.Reason); err != nil {
			return err
		}
	}
	if len(r.file.Results)+len(r.file.Skipped) == 0 {
		if err := p.aside("%s  no flow of a protocol that has a reference\n", p.name(r.path)); err != nil {
			return err
		}
	}
	return p.drift(r)
}

// fingerprint prints, behind the last behaviour of a side, which behaviours it can have.
func (p *replayPrinter) fingerprint(r *replayed, last int) error {
	list := r.file.Results
	same := func(i int) bool {
		return i >= 0 && i < len(list) && list[i].Flow == list[last].Flow && list[i].Side == list[last].Side
	}
	if same(last + 1) {
		return nil
	}
	v, known := list[last].Flow.Versions(list[last].Side)
	var can, apart, refused []string
	for i := last; same(i); i-- {
		switch b := list[i].Behaviour; {
		case list[i].Divergence != nil:
			refused = append(refused, b)
		case known && v.Excludes(b):
			apart = append(apart, b)
		default:
			can = append(can, b)
		}
	}
	slices.Reverse(can)
	slices.Reverse(apart)
	side := strings.ToUpper(list[last].Side.String())
	var lines []string
	switch len(can) {
	case 0:
		lines = append(lines, side+" is none of these")
	case 1:
		lines = append(lines, side+" can be "+can[0]+", and none of the others that were tried")
	default:
		lines = append(lines, side+" can be "+strings.Join(can, ", ")+": the captured packets do not tell them apart")
	}
	if len(apart) > 0 {
		lines = append(lines, fmt.Sprintf("%s acts like %s too, but its packets show another version", side,
			strings.Join(apart, ", ")))
	}
	if len(v.Open) > 0 && len(can) > 0 {
		v = v.Without(func(b string) bool { return slices.Contains(refused, b) })
		lines = append(lines, "the packets of "+side+" show "+show.VersionText(&v))
	}
	for _, text := range lines {
		if _, err := fmt.Fprintln(p.app.Writer(), show.Wrap(text, "    ", p.width)); err != nil {
			return err
		}
	}
	return nil
}

// aside prints what is no result: with the text, but apart from JSON Lines.
func (p *replayPrinter) aside(format string, args ...any) (err error) {
	switch {
	case !p.app.Flags.JSON:
		_, err = fmt.Fprintf(p.app.Writer(), format, args...)
	case !p.app.Flags.Quiet:
		_, err = fmt.Fprintf(p.app.Err, "ackscope: "+format, args...)
	}
	return err
}

// drift prints how a capture differs from its baseline.
func (p *replayPrinter) drift(r *replayed) error {
	if r.changed {
		if err := p.aside("%s  is another capture than its baseline was written for: addresses, frames and counts are not "+
			"compared\n", p.name(r.path)); err != nil {
			return err
		}
	}
	if len(r.drift) == 0 {
		return nil
	}
	if err := p.aside("%s  differs from its baseline:\n", p.name(r.path)); err != nil {
		return err
	}
	for l := range strings.Lines(replay.DriftText(r.drift)) {
		l = strings.TrimSuffix(l, "\n")
		if !p.app.Flags.JSON {
			l = p.paint.String(show.SeverityStyle(machine.Error), l)
		}
		if err := p.aside("    %s\n", l); err != nil {
			return err
		}
	}
	return nil
}

// orphan prints that the capture of a baseline is gone.
func (p *replayPrinter) orphan(path string, bare []string) error {
	p.drifted++
	advice := "put it back, or remove the baseline"
	if to := renamed(path, bare); to != "" {
		advice = "it is now " + printable.String(to) + ": rename the baseline, too"
	}
	return p.aside("%s  its capture is gone: %s\n", printable.String(path), advice)
}

func (p *replayPrinter) object(r *replayed, x *replay.Result) error {
	o := &p.o
	o.Begin()
	o.Str("file", r.path)
	o.Uint("flow", uint64(x.Flow.ID))
	o.Str("protocol", x.Flow.Protocol.Name)
	o.Str("dialect", x.Flow.Config().Dialect)
	o.Str("side", x.Side.String())
	o.Addr("addr", x.Flow.Addr(x.Side))
	o.Str("behaviour", x.Behaviour)
	o.Str("verdict", x.Verdict())
	o.Str("vantage", x.Flow.Facts().Vantage.String())
	o.Uint("packets", x.Compared)
	if x.Undecided > 0 {
		o.Uint("undecided", x.Undecided)
		o.Str("undecided_why", x.Why)
	}
	if d := x.Divergence; d != nil {
		o.Uint("first_frame", d.Ref.Frame())
		o.Time("time", d.At)
		o.Str("rule", d.Rule.ID)
		o.Str("field", d.Field)
		o.Str("expected", d.Expected)
		o.Str("got", d.Got)
		o.Str("because", d.Because)
		o.Frames("frames", d.Frames)
		o.Bool("absence", d.RestsOn.Absence())
		o.Str("certainty", x.Certainty().String())
		o.Str("reference_state", d.Reference)
		o.Str("captured_state", d.Captured)
		o.Str("severity", d.Rule.Severity.String())
		o.Texts("rests_on", d.RestsOn.Words())
	}
	o.Uint("submitted", x.Inferred.Submitted)
	o.Uint("refused", x.Inferred.Refused)
	if x.Inferred.Tick > 0 {
		o.Millis("tick_ms", x.Inferred.Tick)
	}
	if x.Inferred.Resend != "" {
		o.Str("resend", x.Inferred.Resend)
		o.Str("resend_certainty", x.Inferred.ResendKnown.String())
	}
	if p.flags.matrix {
		o.Bool("expected_behaviour", x.Expected)
	}
	if r.baseline && !p.flags.update && p.flags.behaviour == "" && x.Expected {
		o.Bool("drift", drifted(r, x))
	}
	return o.End(p.app.Writer())
}

// drifted reports whether a side differs from the capture's baseline.
func drifted(r *replayed, x *replay.Result) bool {
	name := fmt.Sprintf("flow %d %s", x.Flow.ID, x.Side)
	return slices.ContainsFunc(r.drift, func(d replay.Drift) bool { return d.Flow == name })
}

func (p *replayPrinter) line(r *replayed, x *replay.Result) error {
	w := p.app.Writer()
	verdict := x.Verdict()
	style := show.Style("")
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
	if x.Inferred.Resend != "" {
		note += fmt.Sprintf("; inferred: messages go out again after %s (%v)", x.Inferred.Resend, x.Inferred.ResendKnown)
	}
	if _, err := fmt.Fprintf(w, "%s  flow %d  %s %-22s %-22s %s  %s\n", p.name(r.path), x.Flow.ID,
		strings.ToUpper(x.Side.String()), x.Addr(), x.Behaviour, p.paint.String(style, fmt.Sprintf("%-10s", verdict)),
		note); err != nil {
		return err
	}
	d := x.Divergence
	if !x.Expected {
		return nil
	}
	if d == nil {
		if err := p.undecided(x); err != nil {
			return err
		}
		return p.hint(x)
	}
	text := show.Wrap(printable.String(d.Because), "    ", p.width) + "\n"
	text += "    reference: " + printable.String(d.Reference) + "\n    captured:  " + printable.String(d.Captured) + "\n"
	text += followsFrom(d.Frames)
	switch {
	case x.Misread():
		text += "    likely: the flow may have to be read by another profile, and the side may be right\n"
	case x.Supposed():
		text += "    likely: the capture may have been taken away from this side, and a packet lost in between would " +
			"look the same\n"
	case x.CouldLack():
		text += "    likely: a packet that is missing from the capture would look the same\n"
	case d.Inferred != "":
		text += "    likely: the resend policy is inferred from this side's own packets, " + d.Inferred + "\n"
	case d.Assumed:
		text += "    likely: it rests on a limit that no test measures, see docs/thresholds.md\n"
	}
	if _, err := fmt.Fprint(w, text); err != nil {
		return err
	}
	return p.hint(x)
}

// undecided prints why packets of a side could not be decided.
func (p *replayPrinter) undecided(x *replay.Result) error {
	if x.Undecided == 0 || x.Why == "" {
		return nil
	}
	_, err := fmt.Fprintln(p.app.Writer(), show.Wrap("undecided: "+printable.String(x.Why), "    ", p.width))
	return err
}

// hint prints how to judge a side strictly that says too much against a tap at it, though it
// can stand there.
func (p *replayPrinter) hint(x *replay.Result) error {
	f := x.Flow.Facts()
	if f.Vantage != machine.VantageBetween || !f.Prompt[x.Side] || f.Scrambled[x.Side] {
		return nil
	}
	side := x.Side.String()
	_, err := fmt.Fprintf(p.app.Writer(), "    if you captured at %s: --vantage %s\n", strings.ToUpper(side), side)
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

// done prints the summary: how many captures were read, and how many could not be.
func (p *replayPrinter) done(read, failed int) error {
	if p.app.Flags.JSON {
		return nil
	}
	w := p.app.Writer()
	fmt.Fprintf(w, "%s: %s, %d consistent, %s", show.Plural(read, "capture"), agree(p.sides[0], "side", "conform"),
		p.sides[1], verb(p.sides[2], "diverge"))
	if p.skipped > 0 {
		fmt.Fprintf(w, "; %s without a reference", show.Plural(p.skipped, "flow"))
	}
	if p.letGo > 0 {
		fmt.Fprintf(w, "; %s ended early for lack of memory, so only divergences of them are shown",
			show.Plural(p.letGo, "flow"))
	}
	switch {
	case p.flags.update:
		fmt.Fprintf(w, "; %s written", show.Plural(p.bound, "baseline"))
	case p.bound > 0 && p.bare > 0:
		fmt.Fprintf(w, "; %s without a baseline", show.Plural(p.bare, "capture"))
	}
	if p.drifted > 0 {
		fmt.Fprintf(w, "; %s from the baseline", agree(p.drifted, "capture", "differ"))
	}
	if failed > 0 {
		fmt.Fprintf(w, "; %d could not be done", failed)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// agree returns "1 side conforms", "2 sides conform".
func agree(n int, noun, does string) string {
	if n == 1 {
		does += "s"
	}
	return show.Plural(n, noun) + " " + does
}

// verb returns "1 diverges", "2 diverge".
func verb(n int, does string) string {
	if n == 1 {
		does += "s"
	}
	return show.Grouped(n) + " " + does
}

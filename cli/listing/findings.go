package listing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cause"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// FindingsCommand builds `ackscope findings`.
func FindingsCommand(a *app.App) *cobra.Command {
	live, watch, failOn, failIf, text := &reader.LiveFlags{}, &reader.WatchFlags{}, "", "", ""
	var logs *reader.Logs
	c := &cobra.Command{
		Use:   "findings [FILE...]",
		Short: "What is wrong, how surely, and in which frames",
		Long: `findings lists what the rules found, flow by flow (ackscope explain lists the rules).

A filter (-Y) of a finding can use finding.*, flow.* and the cause of resends. It can also use
what is in the frames of the finding (not live): one frame that matches is enough.

With -i, or --live, a terminal shows a table of them, drawn anew every second. In a pipe those of
a flow are printed when it has ended; --alert prints them as they occur. They are told in one run:
a file is read twice, which settles what stays open in the first.`,
		Example: `  ackscope findings match.pcapng
  ackscope findings -Y 'finding.severity == warn && ip.src == 10.0.0.5' match.pcapng
  ackscope findings --fail-on error regressions            # exit 1 when a capture below it has one
  ackscope findings 'captures/**/*.pcap*'                  # the pattern in quotes: any shell
  ackscope findings --fail-if 'loss > 5% or stall > 500ms' match.pcapng
  ackscope findings --log client=game.jsonl match.pcapng   # the frames of the game beside stalls
  ackscope findings --join eth0.pcapng eth1.pcapng         # two interfaces of one host
  ackscope findings -i eth0 -f 'udp port 7777' --alert warn --json`,
		RunE: func(_ *cobra.Command, args []string) error {
			gate, err := reader.NewGate(a, failIf)
			if err != nil {
				return err
			}
			return gate.End(findings(a, live, watch, args, text, failOn, gate, logs))
		},
	}
	reader.RegisterWatched(a, c, live, watch, &text)
	c.Flags().StringVar(&failOn, "fail-on", "", "exit 1 when a finding is this grave: `note|warn|error`")
	reader.FailIfFlag(c, &failIf, false)
	logs = reader.LogFlag(a, c)
	return c
}

func findings(a *app.App, live *reader.LiveFlags, watch *reader.WatchFlags, args []string, text, failOn string,
	condition *reader.Gate, logs *reader.Logs,
) error {
	if live.List {
		return reader.ListInterfaces(a)
	}
	least := machine.Severity(255)
	if failOn != "" {
		var ok bool
		if least, ok = app.ParseSeverity(failOn); !ok {
			return fmt.Errorf("--fail-on %q: expected note, warn or error", failOn)
		}
	}
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	p := &FindingPrinter{App: a, paint: paint, width: a.Width(), Gate: least, condition: condition, logs: logs}
	if a.Flags.JSON {
		p.Rows = export.NewRows(export.Findings, a.Lines(&export.Findings.Schema))
	}
	within := reader.OfFindings
	if live.Streams(watch) {
		within &= reader.OfLive
	}
	if p.Filter, err = reader.NewRowFilter(a, text, "findings", within); err != nil {
		return err
	}
	if err := logs.Load(); err != nil {
		return err
	}
	if live.Streams(watch) && logs.Asked() {
		return errors.New("--log: expected a file that is read whole, and neither -i nor --live")
	}
	if live.Streams(watch) {
		err = live.Each(a, watch, args, func(r *reader.Recording) error { return p.watch(live, watch, r) })
	} else if err = live.FileOnly(); err == nil {
		err = reader.Each(a, args, p.Study)
	}
	unread := reader.Unread(err)
	if err != nil && unread == nil {
		return err
	}
	if sumErr := p.sum(unread); sumErr != nil {
		return sumErr
	}
	if p.shown == 0 && p.seen > 0 {
		a.Remark("the filter let none of " + show.Plural(p.seen, "finding") + " pass")
	}
	if p.grave == 0 {
		return err
	}
	gate := &app.GateError{Text: fmt.Sprintf("%s of severity %s or above", show.Plural(p.grave, "finding"), failOn)}
	if unread != nil { // a capture that was not read is graver
		a.Trouble(gate)
		return err
	}
	return gate
}

// Study analyses a recording and prints its findings. The error is how reading
// ended.
func (p *FindingPrinter) Study(r *reader.Recording) error {
	var goneErr error
	p.gone = findingCounts{}
	p.App.Memory.Gone = func(f *analyze.Flow, _ analyze.Reason) {
		p.condition.Flow(f)
		p.gone.count(f)
		p.total.count(f)
		p.logs.Forget(f)
		if found := p.counted(f); goneErr == nil {
			goneErr = p.flow(f, found)
		}
	}
	s, in, err := p.Filter.Study(r, false, p.logs.Sink(p.condition.Sink(r, nil)))
	if in != nil {
		defer in.Close()
	}
	if s == nil {
		return err
	}
	p.condition.Session(s)
	p.log = p.logs.Report(s)
	if err := errors.Join(goneErr, p.heading(), p.all(s), p.Filter.Err); err != nil {
		return err
	}
	return p.App.Ended(err)
}

// heading prints the recording's name above text, if there are several
// recordings.
func (p *FindingPrinter) heading() error {
	if p.Rows != nil {
		return nil
	}
	return reader.Heading(p.App, p.Filter.From)
}

// all prints the findings of a session that has ended.
func (p *FindingPrinter) all(s *analyze.Session) error {
	if p.Rows == nil && p.Filter.All() {
		p.verdict(s)
	}
	for _, f := range s.Flows() {
		if err := p.flow(f, p.counted(f)); err != nil {
			return err
		}
	}
	return nil
}

// counted returns a flow's findings that pass the filter. It counts the
// findings that --fail-on asks for.
func (p *FindingPrinter) counted(f *analyze.Flow) []*analyze.Finding {
	found := p.passed(f)
	p.seen, p.shown = p.seen+len(f.Findings()), p.shown+len(found)
	for _, x := range found {
		if x.Rule.Severity >= p.Gate {
			p.grave++
		}
	}
	return found
}

func (p *FindingPrinter) passed(f *analyze.Flow) []*analyze.Finding {
	found := f.Findings()
	if p.Filter.All() {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(x *analyze.Finding) bool {
		return !p.Filter.Finding(f, x)
	})
}

// FindingPrinter prints findings, flow by flow.
type FindingPrinter struct {
	App        *app.App
	paint      show.Painter
	Filter     *reader.RowFilter
	width      int // columns of the terminal; 0 if it is none
	Gate       machine.Severity
	condition  *reader.Gate                    // of --fail-if
	logs       *reader.Logs                    // of --log
	log        *gamelog.Report                 // what they say of the recording; nil without
	seen       int                             // findings that the filter was asked about
	shown      int                             // findings that passed it
	grave      uint64                          // findings at or above the severity of --fail-on
	Rows       *export.Rows[export.FindingRow] // nil for text
	total      findingCounts                   // the counts of all recordings
	recordings int                             // number of recordings printed
	printed    map[*analyze.Finding]uint64     // occurrences that were printed as provisional
	gone       findingCounts                   // the counts of discarded flows, whose findings are printed already
}

// verdict prints the first line: the number of findings of each severity.
func (p *FindingPrinter) verdict(s *analyze.Session) {
	t := p.gone
	t.add(s.Flows())
	fmt.Fprintln(p.App.Writer(), t.text(p.paint))
	p.total.add(s.Flows())
	p.recordings++
	for _, sentence := range cause.New(s).Sentences() {
		fmt.Fprintln(p.App.Writer(), show.Wrap(sentence, "", p.width))
	}
	for _, sentence := range p.log.Sentences() {
		fmt.Fprintln(p.App.Writer(), show.Wrap(sentence, "", p.width))
	}
}

// sum prints the totals of several recordings. unread says how many could not
// be read; it may be nil.
func (p *FindingPrinter) sum(unread *reader.UnreadError) error {
	if p.recordings < 2 && (p.recordings == 0 || unread == nil) {
		return nil
	}
	return writeTotal(p.App, p.recordings, unread, p.total.text(p.paint))
}

// writeTotal writes the total of several recordings: "all 12 captures: …", or
// "10 captures: …; 2 of 12 could not be read".
func writeTotal(a *app.App, recordings int, unread *reader.UnreadError, text string) error {
	of, missing := fmt.Sprintf("all %d captures", recordings), ""
	if unread != nil {
		of = show.Plural(recordings, "capture")
		missing = fmt.Sprintf("; %d of %d could not be read", unread.Unread, unread.Of)
	}
	_, err := fmt.Fprintf(a.Writer(), "\n%s: %s%s\n", of, text, missing)
	return err
}

// findingCounts counts flows, and their findings by severity.
type findingCounts struct {
	flows, known, affected int
	findings               [machine.Error + 1]uint64
	health                 show.Health
}

func (t *findingCounts) add(flows []*analyze.Flow) {
	for _, f := range flows {
		t.count(f)
	}
}

func (t *findingCounts) count(f *analyze.Flow) {
	t.flows++
	if f.Protocol != nil {
		t.known++
	}
	if len(f.Findings()) > 0 {
		t.affected++
	}
	for i, count := range show.Severities(f) {
		t.findings[i] += count
	}
	t.health.Add(f)
}

// text formats the counts. If no rule fired it says only that, since something
// may still be wrong.
func (t *findingCounts) text(paint show.Painter) string {
	if t.affected == 0 {
		return fmt.Sprintf("No rule fired in %s, %d of a protocol that is known. %s", show.Plural(t.flows, "flow"), t.known,
			t.health.String())
	}
	var parts []string
	for sev := machine.Error; ; sev-- {
		if n := t.findings[sev]; n > 0 {
			parts = append(parts, paint.String(show.SeverityStyle(sev), show.Plural(n, show.SeverityNoun(sev))))
		}
		if sev == machine.Note {
			break
		}
	}
	text := fmt.Sprintf("%s in %d of %s", strings.Join(parts, ", "), t.affected, show.Plural(t.flows, "flow"))
	if t.findings[machine.Error]+t.findings[machine.Warn] == 0 {
		text += ". " + t.health.String()
	}
	return text
}

func (p *FindingPrinter) flow(f *analyze.Flow, found []*analyze.Finding) error {
	w := p.App.Writer()
	if len(found) > 0 && p.Rows == nil {
		fmt.Fprintf(w, "\n%s\n",
			p.paint.String(show.Bold, fmt.Sprintf("flow %d  %s  %s → %s", f.ID, show.FlowName(f), f.A, f.B)))
	}
	for _, x := range found {
		if p.Rows != nil {
			row := &export.FindingRow{Finding: x, File: p.Filter.From.File(x.Refs[0])}
			if e, ok := p.log.Finding(x); ok {
				row.Log, row.LogWhy = e.String(), e.Why.String()
			}
			if err := p.Rows.Add(row); err != nil {
				return err
			}
			continue
		}
		severity := fmt.Sprintf("%-5s", strings.ToUpper(x.Rule.Severity.String()))
		if _, err := fmt.Fprintf(w, " %s %-8s  %s  %s %s\n%s\n%s\n%s\n",
			p.paint.String(show.SeverityStyle(x.Rule.Severity), severity), x.Certainty,
			p.paint.String(show.Bold, fmt.Sprintf("%-24s", x.Rule.ID)), strings.ToUpper(x.Side.String()), f.Addr(x.Side),
			show.Wrap(show.Sentence(x.Rule.Summary), "   ", p.width), show.Wrap(x.Message(), "   ", p.width),
			show.Wrap("frames "+show.FrameList(x), "   ", p.width)); err != nil {
			return err
		}
		if v, ok := x.Host(); ok {
			fmt.Fprintln(w, show.Wrap(show.HostLine(&v), "   ", p.width))
		}
		if e, ok := p.log.Finding(x); ok {
			fmt.Fprintln(w, show.Wrap("log: "+e.String(), "   ", p.width))
		}
	}
	return nil
}

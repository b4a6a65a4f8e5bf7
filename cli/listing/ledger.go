package listing

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/ledger"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// LedgerCommand builds `ackscope ledger`.
func LedgerCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "ledger [FILE...]",
		Short: "What the bytes on the wire were spent on, by flow, side and type of message",
		Long: `ledger splits every frame into what it was spent on: the link's header, IP, UDP or TCP,
the protocol's own header, acknowledgements, what the application sent again, and what it
sent for the first time (goodput). Each type of message has a row for each side; what the
messages of one datagram share is charged to each in proportion to its size.

The rows add up to the frames' lengths on the wire, to the bit. Bytes of protocols that pack
bits come in eighths.`,
		Example: `  ackscope ledger match.pcapng
  ackscope ledger --profiles mygame.yaml match.pcapng     # messages by their names
  ackscope ledger --json match.pcapng | jq -s 'map(.bytes) | add'`,
		RunE: func(_ *cobra.Command, args []string) error { return tellLedger(a, args) },
	}
	reader.JoinFlag(a, c)
	return c
}

func tellLedger(a *app.App, args []string) error {
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	p := &ledgerPrinter{app: a, paint: paint, width: a.Width()}
	err = reader.Each(a, args, p.recording)
	unread := reader.Unread(err)
	if err != nil && unread == nil {
		return err
	}
	return errors.Join(p.sum(unread), err)
}

// recording prints the ledger of a recording.
func (p *ledgerPrinter) recording(r *reader.Recording) error {
	a := p.app
	l, err := tally(a, r)
	if l == nil {
		return err
	}
	p.from = r
	p.recordings++
	cost := l.Total()
	p.total.Add(&cost)
	var err2 error
	if a.Flags.JSON {
		err2 = p.json(l)
	} else {
		err2 = p.tables(l)
	}
	if err2 != nil {
		return err2
	}
	return a.Ended(err)
}

// tally returns the ledger of a recording, or nil if it could not be opened. The error is a failure, or
// how the capture ended.
func tally(a *app.App, r *reader.Recording) (*ledger.Ledger, error) {
	o, err := a.Options()
	if err != nil {
		return nil, err
	}
	in, err := reader.Open(a, r, reader.Options{Keep: capture.KeepPipes, Passes: 2})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	first, err := analyze.Learn(in, o)
	if err != nil {
		return &ledger.Ledger{}, err
	}
	o.Survey = first.Survey()
	ledgerNeeds(&o, first)
	return ledger.Run(in, o, a.Share(8))
}

// ledgerNeeds omits trackers where no flow has one that reports what is sent again: the ledger
// reads nothing else of them. Of flows that were let go, nothing is known.
func ledgerNeeds(o *analyze.Options, first *analyze.Session) {
	tracked := len(first.Gone()) > 0 || slices.ContainsFunc(first.Flows(), func(f *analyze.Flow) bool {
		return f.Protocol != nil && f.Protocol.Resends
	})
	o.NoEvents, o.NoMessages, o.NoRelays, o.Untracked, o.Detached = !tracked, true, true, !tracked, true
}

type ledgerPrinter struct {
	app        *app.App
	from       *reader.Recording
	recordings int
	total      ledger.Cost // the cost of all recordings
	paint      show.Painter
	width      int
	o          app.Object
}

// tables prints a table for each side that sent packets.
func (p *ledgerPrinter) tables(l *ledger.Ledger) error {
	if err := reader.Heading(p.app, p.from); err != nil {
		return err
	}
	w := p.app.Writer()
	total := l.Total()
	fmt.Fprintf(w, "%s on the wire: %s\n", show.Bytes(total.Total()), costText(&total))
	for _, f := range l.Flows() {
		fmt.Fprintf(w, "\n%s\n", p.paint.String(show.Bold, fmt.Sprintf("flow %d  %s", f.Flow.ID, show.FlowName(f.Flow))))
		for side := range f.Sides {
			s := machine.Side(side)
			if f.Sides[side].Frames == 0 && len(f.Sides[side].Rows()) == 0 {
				continue
			}
			title := fmt.Sprintf("%s %s → %s", strings.ToUpper(s.String()), f.Flow.Addr(s), f.Flow.Addr(s.Other()))
			if err := p.side(title, &f.Sides[side]); err != nil {
				return err
			}
		}
	}
	if sum, n := l.Gone(); n > 0 {
		fmt.Fprintf(w, "\n%s\n",
			p.paint.String(show.Bold, show.Plural(n, "flow")+" that ended early because memory ran out, in all"))
		if err := p.side("", sum); err != nil {
			return err
		}
	}
	if other := l.Other(); len(other.Rows()) > 0 {
		fmt.Fprintf(w, "\n%s\n", p.paint.String(show.Bold, "frames of no flow"))
		return p.side("", other)
	}
	return nil
}

// sum prints the total cost of several recordings. unread says how many could
// not be read; it may be nil.
func (p *ledgerPrinter) sum(unread *reader.UnreadError) error {
	if p.recordings < 2 && (p.recordings == 0 || unread == nil) || p.app.Flags.JSON {
		return nil
	}
	return writeTotal(p.app, p.recordings, unread,
		show.Bytes(p.total.Total())+" on the wire: "+costText(&p.total))
}

// costText formats what a total was spent on, in one line.
func costText(c *ledger.Cost) string {
	var parts []string
	for _, x := range []struct {
		name string
		bits uint64
	}{
		{"goodput", c.Goodput},
		{"sent again", c.Resent},
		{"acks", c.Acks},
		{"protocol headers", c.Header},
		{"IP and UDP", c.IP + c.Transport},
		{"link", c.Link},
	} {
		if x.bits > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", show.Share(x.bits, c.Total()), x.name))
		}
	}
	return strings.Join(parts, " · ")
}

func (p *ledgerPrinter) side(title string, s *ledger.Side) error {
	w := p.app.Writer()
	rows, sum := s.Rows(), s.Total()
	if title != "" {
		fmt.Fprintf(w, "%s  %s in %s\n", title, show.Bytes(sum.Total()), show.Plural(s.Frames, "frame"))
	}
	c := &app.Columns{
		Paint: p.paint, Fit: p.width,
		Heads: []string{
			"type", "count", "copies", "bytes", "share", "each", "goodput", "again", "acks", "header",
			"IP+UDP", "link",
		},
		Right: []bool{false, true, true, true, true, true, true, true, true, true, true, true},
	}
	return c.Render(w, len(rows)+1, func(i int) {
		r, style := &ledger.Row{Type: "all", Cost: sum}, show.Bold
		if i < len(rows) {
			r, style = rows[i], ""
		}
		c.Str(style, string(show.AppendClean(nil, r.Type)))
		c.Str("", count(r.Count))
		c.Str("", count(r.Copies))
		c.Str("", show.Octets(r.Total()))
		c.Str("", show.Share(r.Total(), sum.Total()))
		each := ""
		if r.Count > 0 {
			each = strconv.FormatFloat(float64(r.Total())/8/float64(r.Count), 'f', 1, 64)
		}
		c.Str("", each)
		for _, bits := range []uint64{r.Goodput, r.Resent, r.Acks, r.Header, r.IP + r.Transport, r.Link} {
			c.Str("", show.Octets(bits))
		}
	})
}

func count(n uint64) string {
	if n == 0 {
		return ""
	}
	return show.Grouped(n)
}

// json prints a line for each row of each side's ledger. The rows of discarded
// flows and of other frames follow.
func (p *ledgerPrinter) json(l *ledger.Ledger) error {
	for _, f := range l.Flows() {
		for side := range f.Sides {
			s := machine.Side(side)
			for _, r := range f.Sides[side].Rows() {
				o := &p.o
				o.Begin()
				o.File(p.from.File(f.Flow.FirstRef))
				o.Uint("flow", uint64(f.Flow.ID))
				if f.Flow.Protocol != nil {
					o.Str("protocol", f.Flow.Protocol.Name)
					o.Str("dialect", f.Flow.Config().Dialect)
				} else {
					o.Null("protocol")
					o.Null("dialect")
				}
				o.Str("side", s.String())
				o.Addr("addr", f.Flow.Addr(s))
				if err := p.row(r); err != nil {
					return err
				}
			}
		}
	}
	sum, n := l.Gone()
	for _, r := range sum.Rows() {
		p.o.Begin()
		p.o.Null("flow")
		p.o.Null("protocol")
		p.o.Uint("flows_let_go", uint64(n))
		if err := p.row(r); err != nil {
			return err
		}
	}
	for _, r := range l.Other().Rows() {
		p.o.Begin()
		p.o.File(p.from.Only())
		p.o.Null("flow")
		p.o.Null("protocol")
		if err := p.row(r); err != nil {
			return err
		}
	}
	return nil
}

func (p *ledgerPrinter) row(r *ledger.Row) error {
	o := &p.o
	o.Str("type", r.Type)
	o.Uint("count", r.Count)
	o.Uint("copies", r.Copies)
	for _, x := range []struct {
		key  string
		bits uint64
	}{
		{"bytes", r.Total()},
		{"goodput_bytes", r.Goodput},
		{"resent_bytes", r.Resent},
		{"ack_bytes", r.Acks},
		{"header_bytes", r.Header},
		{"transport_bytes", r.Transport},
		{"ip_bytes", r.IP},
		{"link_bytes", r.Link},
	} {
		o.Float(x.key, float64(x.bits)/8, 3)
	}
	return o.End(p.app.Writer())
}

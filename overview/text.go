package overview

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Page says how the text of a diagnosis looks.
type Page struct {
	Paint   show.Painter
	Width   int  // columns of the terminal; 0 for the usual 80
	All     bool // list the flows of no known protocol too
	Verbose bool // why no protocol explains them; lists them too
	Files   []string
	Flags   []string // of the commands that Next names
}

// Widths of the text. A line of more columns is hard to read.
const (
	usualWidth = 80
	mostWidth  = 100
	indent     = 11 // of what stands behind "network  " and the other labels
)

// Mark is a place of the text at which a reader may go on: the title of a flow, or a trouble.
type Mark struct {
	At    int // byte of the text at which its first line begins
	Flow  *analyze.Flow
	Frame machine.Ref // the first that shows the trouble; 0 for a title
}

// WriteText writes the diagnosis as text.
func (c *Capture) WriteText(w io.Writer, p *Page) error {
	t := c.text(p)
	t.next(c.Next(p.Files, p.Flags))
	_, err := w.Write(t.out)
	return err
}

// Text returns the diagnosis as text without the commands that show more, and its marks in the
// order of the text.
func (c *Capture) Text(p *Page) (string, []Mark) {
	t := c.text(p)
	return string(t.out), t.marks
}

func (c *Capture) text(p *Page) *text {
	t := &text{Page: *p}
	if t.Width <= 0 {
		t.Width = usualWidth
	}
	t.Width = min(t.Width, mostWidth)
	t.All = t.All || t.Verbose
	t.lines(Heading(c.Name, "", c.Session), "")
	t.blank()
	t.verdict(c)
	for _, f := range c.Flows {
		t.flow(f)
	}
	t.rest(c)
	return t
}

// text is a diagnosis as it is written.
type text struct {
	Page
	out   []byte
	marks []Mark
}

func (t *text) blank() { t.out = append(t.out, '\n') }

// lines appends text from the capture, wrapped, each line behind an indent.
func (t *text) lines(s, before string) {
	t.out = append(t.out, show.Wrap(string(show.AppendClean(nil, s)), before, t.Width)...)
	t.blank()
}

// verdict writes the sentence, and why there is none.
func (t *text) verdict(c *Capture) {
	style := show.Bold
	if grade, ok := c.Grade(); ok {
		style = show.SeverityStyle(grade)
	}
	for line := range strings.SplitSeq(show.Wrap(string(show.AppendClean(nil, c.Sentence())), "", t.Width), "\n") {
		t.out = append(t.Paint.Text(t.out, style, line), '\n')
	}
	if c.Cause.Enough() {
		for _, sentence := range c.Cause.Sentences() {
			t.lines(sentence, "")
		}
	}
	for _, sentence := range c.Logs.Sentences() {
		t.lines(sentence, "")
	}
	if c.Problem != nil {
		t.lines("Reading ended early: "+c.Problem.Error(), "")
	}
	if len(c.Flows) == 0 {
		t.lines(c.nothing(), "")
	}
}

// nothing says why no flow has a protocol, and what to try.
func (c *Capture) nothing() string {
	switch {
	case c.Session.Packets() == 0:
		return "The capture has no packets."
	case len(c.Others) == 0:
		return "None of its packets is a UDP or TCP packet."
	}
	f := c.Others[0]
	for _, x := range c.Others {
		if x.Packets[0]+x.Packets[1] > f.Packets[0]+f.Packets[1] {
			f = x
		}
	}
	reason := ""
	if f.Verdict.Reason != "" {
		reason = ": " + strings.TrimSuffix(f.Verdict.Reason, ".")
	}
	return fmt.Sprintf("The largest is flow %d, %s ⇄ %s, %s%s. If you know its protocol, name it: "+
		"-d udp.port==%d,PROTOCOL (ackscope protocols lists them).", f.ID, f.A, f.B,
		show.Plural(f.Packets[0]+f.Packets[1], "packet"), reason, f.B.Port())
}

func (t *text) flow(f *Flow) {
	t.blank()
	t.marks = append(t.marks, Mark{At: len(t.out), Flow: f.Flow})
	t.out = append(t.Paint.Text(t.out, show.Bold, f.title()), '\n')
	for i := range f.Sides {
		s := &f.Sides[i]
		style := [2]show.Style{show.Cyan, show.Purple}[i]
		t.out = append(t.out, "  "...)
		addr := name(s.Side) + "  " + f.Addr(s.Side).String()
		t.out = t.Paint.Text(t.out, style, addr)
		seen := f.seen(s)
		if 4+len(addr)+utf8.RuneCountInString(seen) > t.Width {
			t.out = append(t.out, "\n   "...) // long addresses
		}
		t.out = append(t.out, "  "+seen+"\n"...)
	}
	t.part("network", f.network(), f, machine.OriginNetwork)
	t.part("library", f.library(), f, machine.OriginLibrary)
	t.part("code", f.code(), f, machine.OriginCode)
	t.part("capture", nil, f, machine.OriginCapture)
	if len(f.End.Story) > 0 {
		t.part("end", f.End.Story[:1], f, machine.OriginUnsaid)
	}
}

// title names the flow, its protocol and, if both sides agree, the version of the library.
func (f *Flow) title() string {
	s := fmt.Sprintf("flow %s  %s", show.FlowNumber(f.Flow), show.FlowName(f.Flow))
	if f.Version != "" {
		s += "  " + f.Version
	}
	return s
}

// seen says how the capture shows a side.
func (f *Flow) seen(s *Side) string {
	sent := show.Plural(f.Packets[s.Side], "packet")
	if s.Role != "" {
		sent = s.Role + ", " + sent
	}
	if s.Version != "" && f.Version == "" {
		sent = s.Version + ", " + sent
	}
	switch {
	case s.Near:
		return sent + ", captured here"
	case f.Facts().Vantage == machine.VantageUnknown:
		return sent
	}
	return sent + ", inferred from its acks"
}

// part writes what concerns one place: the figures, then the troubles.
func (t *text) part(label string, figures []string, f *Flow, place machine.Origin) {
	first := fmt.Sprintf("  %-*s", indent-2, label)
	rest := strings.Repeat(" ", indent)
	line := func(styled func(string) string, s string) {
		wrapped := show.Wrap(string(show.AppendClean(nil, s)), "", t.Width-indent)
		for l := range strings.SplitSeq(wrapped, "\n") {
			t.out = append(t.out, first+styled(l)+"\n"...)
			first = rest
		}
	}
	plain := func(s string) string { return s }
	for _, s := range figures {
		line(plain, s)
	}
	shown, more := 0, 0
	for i := range f.Troubles {
		x := &f.Troubles[i]
		if x.Origin != place || x.Rule == nil {
			continue
		}
		if shown == troublesShown {
			more++
			continue
		}
		shown++
		style := show.SeverityStyle(x.Severity)
		if x.Frame != 0 {
			t.marks = append(t.marks, Mark{At: len(t.out), Flow: f.Flow, Frame: x.Frame})
		}
		line(func(s string) string { return t.Paint.String(style, s) }, x.String())
		if x.Host != nil {
			line(plain, show.HostLine(x.Host))
		}
		if x.Log != "" {
			line(plain, "log: "+x.Log)
		}
	}
	if more > 0 {
		line(plain, fmt.Sprintf("and %d more (ackscope findings)", more))
	}
}

// troublesShown is how many troubles of one place are shown.
const troublesShown = 4

// String describes the trouble in one line: "WARN steady-loss, A: 9.3% of 1166 packets that
// acks speak of were named by none (likely)".
func (t *Trouble) String() string {
	s := fmt.Sprintf("%s %s, %s: %s (%s%s)", strings.ToUpper(t.Severity.String()), t.Rule.ID, name(t.Side),
		strings.TrimSuffix(t.Text, "."), t.sure(), t.where())
	return s
}

// where names the first frame that shows the trouble.
func (t *Trouble) where() string {
	if t.Frame == 0 {
		return ""
	}
	return fmt.Sprintf(", frame %d", t.Frame.Frame())
}

// sure says how surely the capture shows the trouble.
func (t *Trouble) sure() string {
	if t.Certainty == machine.Certain {
		return "proven by the capture"
	}
	return t.Certainty.String()
}

// network describes the network: a line for each direction, and one for the round trips.
func (f *Flow) network() []string {
	var lines []string
	for i := range f.Sides {
		n := &f.Sides[i].Network
		s := Way(machine.Side(i)) + " loss " + LossText(n)
		if n.Stall > 0 {
			s += "; longest silence " + Millis(n.Stall)
			if n.StallAt != 0 {
				s += fmt.Sprintf(", before frame %d", n.StallAt.Frame())
			}
		}
		lines = append(lines, s)
	}
	return append(lines, f.roundTrip())
}

// library describes what the libraries sent again, and what waited for it.
func (f *Flow) library() (lines []string) {
	for i := range f.Sides {
		s := &f.Sides[i]
		l := &s.Lives
		sum, _ := f.Summary(s.Side)
		text := ""
		switch {
		case l.Count > 0 && l.Resent == 0:
			text = fmt.Sprintf("%s sent none of its %s again", name(s.Side), show.Plural(l.Count, "message"))
		case l.Count > 0:
			text = fmt.Sprintf("%s: %s of %s sent again; worst: %s, %s", name(s.Side), show.Grouped(l.Resent),
				show.Plural(l.Count, "message"), l.Most.name(), l.Most.sent())
		case sum.Resends > 0:
			text = fmt.Sprintf("%s: %s sent again", name(s.Side), show.Grouped(sum.Resends))
		}
		if text == "" {
			continue
		}
		if len(s.Causes) > 0 {
			var why []string
			for _, c := range s.Causes {
				why = append(why, show.Grouped(c.Count)+" "+strings.ReplaceAll(c.Word, "-", " "))
			}
			text += "; why: " + strings.Join(why, ", ")
		}
		lines = append(lines, text)
		if l.Arrival.Count > 0 {
			lines = append(lines, fmt.Sprintf("%s: half of them arrived within about %s, 95%% within %s", Way(s.Side),
				Millis(l.Arrival.Quantile(0.5)), Millis(l.Arrival.Quantile(0.95))))
		}
		if l.Waited > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s had arrived and waited for an earlier one, the longest %s (%s)",
				Way(s.Side), show.Plural(l.Waited, "message"), Millis(l.Longest.Wait), l.Longest.name()))
		}
	}
	if len(lines) == 0 {
		lines = append(lines, "the capture shows no messages that can be read, and no packet was sent again")
	}
	return lines
}

// name names the message by its number and frame.
func (l *Life) name() string {
	if l.ID < 0 {
		return fmt.Sprintf("frame %d", l.Frame.Frame())
	}
	return fmt.Sprintf("id %d, frame %d", l.ID, l.Frame.Frame())
}

// sent says how often the message was sent: "sent 4 times", or "its 32 parts took 64 packets".
func (l *Life) sent() string {
	if l.Parts > 0 {
		return fmt.Sprintf("its %s took %s", show.Plural(l.Parts, "part"), show.Plural(l.Attempts, "packet"))
	}
	return fmt.Sprintf("sent %s times", show.Grouped(l.Attempts))
}

// code describes what replay found.
func (f *Flow) code() (lines []string) {
	if f.Skipped != "" {
		return []string{strings.TrimSuffix(f.Skipped, ".")}
	}
	for i := range f.Sides {
		if r := f.Sides[i].Result; r != nil {
			lines = append(lines, opinion(r))
		}
	}
	if len(lines) == 0 {
		lines = append(lines, "not compared with a reference")
	}
	return lines
}

// rest counts the flows that were not shown.
func (t *text) rest(c *Capture) {
	if q := c.Session.Quotes(); q.Unknown > 0 {
		t.blank()
		t.lines(fmt.Sprintf("%s of no flow in the capture: other programs of these hosts, flows that ended before it "+
			"began, or forged errors (ackscope packets -Y icmp.reason)",
			machine.Count(q.Unknown, "ICMP error quotes a datagram", "ICMP errors quote datagrams")), "")
	}
	if c.More > 0 {
		shown := 0
		for _, f := range c.Flows {
			if len(f.Troubles) > 0 {
				shown++
			}
		}
		s := fmt.Sprintf("and %s of known protocols, %s with a warning or an error (--all)",
			show.Plural(c.More, "flow"), show.Grouped(c.Troubled-shown))
		t.blank()
		t.lines(s, "")
	}
	if len(c.Others) == 0 || len(c.Flows) == 0 && !t.All {
		return
	}
	t.blank()
	if !t.All {
		t.lines(OthersText(len(c.Others), len(c.Flows) > 0), "")
		return
	}
	for _, f := range c.Others {
		t.lines(otherText(f, t.Verbose), "")
	}
}

// OthersText counts flows of no known protocol in a line: "56 other flows (--all)".
func OthersText(others int, besides bool) string {
	word := "flow"
	if besides {
		word = "other flow"
	}
	return show.Plural(others, word) + " of no protocol that ackscope knows (--all)"
}

func otherText(f *analyze.Flow, why bool) string {
	s := fmt.Sprintf("flow %s  %s ⇄ %s  %s", show.FlowNumber(f), f.A, f.B,
		show.Plural(f.Packets[0]+f.Packets[1], "packet"))
	if why && f.Verdict.Reason != "" {
		s += ": " + f.Verdict.Reason
	}
	return s
}

func (t *text) next(list []Command) {
	if len(list) == 0 {
		return
	}
	t.blank()
	t.out = append(t.Paint.Text(t.out, show.Bold, "next"), '\n')
	for i := range list {
		t.lines(list[i].Why, "  ")
		t.out = append(t.out, "    "+list[i].String()+"\n"...)
	}
}

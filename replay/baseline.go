package replay

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/machine"
)

// BaselineSuffix is what a baseline's name adds to the name of its capture.
const BaselineSuffix = ".replay"

const baselineHead = "# ackscope replay baseline, one line for each flow and side; written by `ackscope replay " +
	"--update`"

// Identity tells one capture file from another: its size and the SHA-256 of its bytes on disk.
// The zero value is an unknown one.
type Identity struct {
	Bytes  int64
	SHA256 string // 64 hexadecimal digits
}

// Baseline is what an earlier run found of a capture. It is text that people read and version
// control compares.
//
//	# ackscope replay baseline, …
//	capture bytes=93104 sha256=9c1185a5…
//	flow 1 a 10.0.0.1:30000 reliable@>=1.3 conforms tap=a packets=300
type Baseline struct {
	Capture Identity // of the capture that it was written for
	lines   []line
}

// line is what a baseline says of one side of one flow: words with a blank between, the last
// ones as name=value.
type line struct {
	text                                      string
	flow, side, address, behaviour, judgement string
	figures                                   []figure
}

type figure struct{ name, value string }

// BaselineOf returns the baseline of a run. It has the expected behaviours only.
func BaselineOf(f *File, capture Identity) *Baseline {
	b := &Baseline{Capture: capture}
	for i := range f.Results {
		if r := &f.Results[i]; r.Expected {
			l, _ := parseLine(r.line()) // parseLine reads whatever line writes
			b.lines = append(b.lines, l)
		}
	}
	return b
}

func (r *Result) line() string {
	var w bytes.Buffer
	fmt.Fprintf(&w, "flow %d %s %s %s %s tap=%s packets=%d", r.Flow.ID, r.Side, r.Addr(), r.Behaviour, r.Verdict(),
		r.Flow.Facts().Vantage, r.Compared)
	if r.Undecided > 0 {
		fmt.Fprintf(&w, " undecided=%d", r.Undecided)
	}
	if d := r.Divergence; d != nil {
		fmt.Fprintf(&w, " frame=%d rule=%s field=%s expected=%s got=%s", d.Ref.Frame(), d.Rule.ID, d.Field,
			strconv.Quote(d.Expected), strconv.Quote(d.Got))
	}
	return w.String()
}

func parseLine(text string) (l line, ok bool) {
	words := strings.SplitN(text, " ", 7)
	if len(words) < 6 || words[0] != "flow" {
		return l, false
	}
	if n, err := strconv.ParseUint(words[1], 10, 32); err != nil || n == 0 || words[2] != "a" && words[2] != "b" ||
		verdictRank(words[5]) < 0 {
		return l, false
	}
	l = line{text: text, flow: words[1], side: words[2], address: words[3], behaviour: words[4], judgement: words[5]}
	rest := ""
	if len(words) == 7 {
		rest = words[6]
	}
	for rest != "" {
		var f figure
		if f.name, rest, ok = strings.Cut(rest, "="); !ok || f.name == "" {
			return l, false
		}
		if quoted, err := strconv.QuotedPrefix(rest); err == nil {
			f.value, rest = quoted, rest[len(quoted):]
			if rest, ok = strings.CutPrefix(rest, " "); !ok && rest != "" {
				return l, false
			}
		} else {
			f.value, rest, _ = strings.Cut(rest, " ")
		}
		l.figures = append(l.figures, f)
	}
	return l, true
}

// verdictRank orders the verdicts; it is negative for another word.
func verdictRank(word string) int {
	return slices.Index([]string{"conforms", "consistent", "diverges"}, word)
}

func (l *line) figure(name string) string {
	for _, f := range l.figures {
		if f.name == name {
			return f.value
		}
	}
	return ""
}

// ReadBaseline reads a baseline. Its errors name the line, what was expected and what was found.
func ReadBaseline(from io.Reader) (*Baseline, error) {
	b := &Baseline{}
	s := bufio.NewScanner(from)
	for n := 1; s.Scan(); n++ {
		text := s.Text()
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
		case strings.HasPrefix(text, "capture "):
			if _, err := fmt.Sscanf(text, "capture bytes=%d sha256=%64s", &b.Capture.Bytes, &b.Capture.SHA256); err != nil ||
				len(b.Capture.SHA256) != 64 {
				return nil, fmt.Errorf("line %d: expected `capture bytes=N sha256=DIGITS`, found another line of %d bytes",
					n, len(text))
			}
		default:
			l, ok := parseLine(text)
			if !ok {
				return nil, fmt.Errorf("line %d: expected `flow N a|b ADDRESS BEHAVIOUR conforms|consistent|diverges "+
					"NAME=VALUE...`, found another line of %d bytes", n, len(text))
			}
			if b.find(&l) != nil {
				return nil, fmt.Errorf("line %d: expected one line for each flow and side, found a second for flow %s %s", n,
					l.flow, l.side)
			}
			b.lines = append(b.lines, l)
		}
	}
	return b, s.Err()
}

// WriteTo writes the baseline.
func (b *Baseline) WriteTo(to io.Writer) (int64, error) {
	var w bytes.Buffer
	fmt.Fprintln(&w, baselineHead)
	if b.Capture.SHA256 != "" {
		fmt.Fprintf(&w, "capture bytes=%d sha256=%s\n", b.Capture.Bytes, b.Capture.SHA256)
	}
	for i := range b.lines {
		fmt.Fprintln(&w, b.lines[i].text)
	}
	n, err := to.Write(w.Bytes())
	return int64(n), err
}

// find returns the line of the same flow and side; nil for none.
func (b *Baseline) find(like *line) *line {
	for i := range b.lines {
		if l := &b.lines[i]; l.flow == like.flow && l.side == like.side {
			return l
		}
	}
	return nil
}

// Behaviour returns the behaviour that the baseline has for a side; empty for none.
func (b *Baseline) Behaviour(flow int, side machine.Side) string {
	if l := b.find(&line{flow: strconv.Itoa(flow), side: side.String()}); l != nil {
		return l.behaviour
	}
	return ""
}

// Changed reports whether now is the baseline of another capture.
func (b *Baseline) Changed(now *Baseline) bool {
	return b.Capture.SHA256 != "" && now.Capture.SHA256 != "" && b.Capture != now.Capture
}

// Drift is what differs of one side of one flow: in words, and as lines of a diff.
type Drift struct {
	Flow string // "flow 1 a"
	Says string // "conforms -> diverges; frame 212: ack-never-arrived: …"
	Was  string // the baseline's line; empty where it has none
	Is   string // the present line; empty where the flow is gone
}

// Drift returns what has changed since the baseline was written. If it was written for another
// capture, only what belongs to the implementation is compared: behaviours, verdicts, rules
// and fields. Addresses and counts are not.
func (b *Baseline) Drift(now *Baseline) (list []Drift) {
	another := b.Changed(now)
	for i := range b.lines {
		was := &b.lines[i]
		is := now.find(was)
		if is == nil {
			list = append(list, Drift{Flow: was.name(), Says: "is not there any more", Was: was.text})
		} else if says := was.drift(is, another); says != "" {
			list = append(list, Drift{Flow: was.name(), Says: says, Was: was.text, Is: is.text})
		}
	}
	for i := range now.lines {
		if is := &now.lines[i]; b.find(is) == nil {
			list = append(list, Drift{Flow: is.name(), Says: "is not in the baseline", Is: is.text})
		}
	}
	return list
}

func (l *line) name() string { return "flow " + l.flow + " " + l.side }

// drift says in words what differs; empty where nothing does.
func (l *line) drift(is *line, another bool) string {
	var says []string
	tell := func(what, was, now string) {
		if was != now {
			says = append(says, strings.TrimSpace(fmt.Sprintf("%s %s -> %s", what, orNone(was), orNone(now))))
		}
	}
	tell("", l.judgement, is.judgement)
	tell("", l.behaviour, is.behaviour)
	if !another {
		tell("", l.address, is.address)
	}
	var names []string
	for _, f := range slices.Concat(l.figures, is.figures) {
		if !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	for _, n := range names {
		if !another || n == "rule" || n == "field" {
			tell(n, l.figure(n), is.figure(n))
		}
	}
	return strings.Join(says, ", ")
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

package sim

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
)

// Journal holds all inputs of a run, in order. Fresh endpoints that take these
// inputs repeat the run byte for byte, without links and random numbers.
type Journal struct {
	Seed    uint64
	Note    map[string]string // what the recorder needs to build the endpoints again
	Entries []Entry
	// Digests reports that every entry has the digest of what its endpoint
	// sent. Journals of version 1 do not have them.
	Digests bool
	// Cut reports that the text had no last line: the run, or the file, was cut
	// short.
	Cut bool
}

// Entry is one input, with its time and its host (by Host.Index).
type Entry struct {
	At   machine.Instant
	Host int
	In   machine.Input
	Sent string // Digest of what the endpoint then sent; empty when it sent nothing
}

// Digest returns a digest of what an endpoint sent in one step. It holds the
// number of transmissions, and 64 bits of a SHA-256 over them and their peers.
// Digest returns "" when there are none.
func Digest(sent []machine.Transmission) string {
	if len(sent) == 0 {
		return ""
	}
	sum := sha256.New()
	for i := range sent {
		x := &sent[i]
		fmt.Fprintf(sum, "%d %d %d:", x.To, x.Kind, len(x.Bytes)) // a hash never fails
		sum.Write(x.Bytes)
	}
	return fmt.Sprintf("%d:%x", len(sent), sum.Sum(nil)[:8])
}

// DifferError describes the first step in which an endpoint sent something
// other than the journal's endpoint did.
type DifferError struct {
	Entry     *Entry
	Line      int // in the journal's text
	Got, Sent string
	Bytes     []byte // of the first transmission that it sent now
}

func (e *DifferError) Error() string {
	count := func(digest string) string {
		if digest == "" {
			return "nothing"
		}
		n, sum, _ := strings.Cut(digest, ":")
		return fmt.Sprintf("%s datagram(s) of digest %s", n, sum)
	}
	text := fmt.Sprintf("journal line %d: at %v host %d gets %s: expected that it sends %s, it sends %s",
		e.Line, time.Duration(e.Entry.At), e.Entry.Host, e.Entry.line().In, count(e.Sent), count(e.Got))
	if len(e.Bytes) > 0 {
		const shown = 32
		text += fmt.Sprintf(", the first one %x", e.Bytes[:min(len(e.Bytes), shown)])
		if len(e.Bytes) > shown {
			text += "..."
		}
	}
	return text
}

// Record returns a journal that records the inputs while the world runs.
func (w *World) Record() *Journal {
	j := &Journal{Seed: w.seed, Digests: true}
	w.Watch(func(s *Step) {
		j.Entries = append(j.Entries, Entry{At: s.At, Host: s.Host.Index, In: keep(s.In), Sent: Digest(s.Out.Transmit)})
	})
	return j
}

// keep copies an input, with the bytes that it borrows.
func keep(in machine.Input) machine.Input {
	switch in := in.(type) {
	case machine.Arrive:
		in.Bytes = bytes.Clone(in.Bytes)
		return in
	case machine.Submit:
		in.Payload = bytes.Clone(in.Payload)
		return in
	case machine.Command:
		in.Payload = bytes.Clone(in.Payload)
		return in
	case machine.Bytes:
		in.Bytes = bytes.Clone(in.Bytes)
		return in
	}
	return in
}

// Play passes the journal's inputs to fresh endpoints (by host index), and
// calls watch with each step's effects. It returns an error when the journal
// names a host without an endpoint, or when an endpoint refuses an input. It
// returns a DifferError when an endpoint sends something other than the journal
// records.
func (j *Journal) Play(endpoints []machine.Endpoint, watch func(e *Entry, out *machine.Effects)) error {
	var out machine.Effects
	for i := range j.Entries {
		e := &j.Entries[i]
		if e.Host < 0 || e.Host >= len(endpoints) {
			return fmt.Errorf("journal line %d: host %d, expected one of %d", i+2, e.Host, len(endpoints))
		}
		out.Reset()
		if err := endpoints[e.Host].Step(e.At, e.In, &out); err != nil {
			return fmt.Errorf("journal line %d: %w", i+2, err)
		}
		watch(e, &out)
		if got := Digest(out.Transmit); j.Digests && got != e.Sent {
			d := &DifferError{Entry: e, Line: i + 2, Got: got, Sent: e.Sent}
			if len(out.Transmit) > 0 {
				d.Bytes = bytes.Clone(out.Transmit[0].Bytes)
			}
			return d
		}
	}
	return nil
}

// A journal's text is JSON Lines:
//
//   - The header {"journal":2,...}.
//   - One line for each input, with bytes in hexadecimal.
//   - {"end":N} after N inputs.
//
// Version 1 has no last line and no digests.
type headerLine struct {
	Journal int               `json:"journal"`
	Seed    uint64            `json:"seed"`
	Note    map[string]string `json:"note,omitempty"`
}

type entryLine struct {
	At      int64  `json:"at"` // nanoseconds since the start of the run
	Host    int    `json:"host"`
	In      string `json:"in"`
	Peer    uint32 `json:"peer,omitempty"`
	Channel uint8  `json:"channel,omitempty"`
	Type    uint32 `json:"type,omitempty"`
	Command string `json:"command,omitempty"`
	Refuse  bool   `json:"refuse,omitempty"`
	Bytes   string `json:"bytes,omitempty"`
	Sent    string `json:"sent,omitempty"` // Digest
}

type endLine struct {
	End int `json:"end"`
}

// anyLine is a line after the header.
type anyLine struct {
	entryLine

	End *int `json:"end"`
}

// The versions of the text.
const (
	versionPlain   = 1
	versionDigests = 2
)

// WriteTo writes the journal's text.
func (j *Journal) WriteTo(w io.Writer) (int64, error) {
	counted := &counter{w: w}
	version := versionPlain
	if j.Digests {
		version = versionDigests
	}
	lines, err := newJournalWriter(counted, version, j.Seed, j.Note)
	for i := range j.Entries {
		if err != nil {
			break
		}
		err = lines.Write(&j.Entries[i])
	}
	if err == nil && j.Digests && !j.Cut {
		err = lines.End()
	}
	if err == nil {
		err = lines.Flush()
	}
	return counted.n, err
}

// JournalWriter writes a journal's text during the run.
type JournalWriter struct {
	buffered *bufio.Writer
	lines    *json.Encoder
	inputs   int
}

// NewJournalWriter writes the header. Headers have the same length when the
// seed is the same, and the values of the notes have the same lengths.
func NewJournalWriter(w io.Writer, seed uint64, note map[string]string) (*JournalWriter, error) {
	return newJournalWriter(w, versionDigests, seed, note)
}

func newJournalWriter(w io.Writer, version int, seed uint64, note map[string]string) (*JournalWriter, error) {
	buffered := bufio.NewWriter(w)
	j := &JournalWriter{buffered: buffered, lines: json.NewEncoder(printable.JSONWriter(buffered))}
	return j, j.lines.Encode(headerLine{Journal: version, Seed: seed, Note: note})
}

// Write appends one input.
func (j *JournalWriter) Write(e *Entry) error {
	j.inputs++
	return j.lines.Encode(e.line())
}

// End appends the last line, which marks the journal as complete.
func (j *JournalWriter) End() error { return j.lines.Encode(endLine{j.inputs}) }

// Flush passes what was written to the underlying writer.
func (j *JournalWriter) Flush() error { return j.buffered.Flush() }

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (e *Entry) line() entryLine {
	l := entryLine{At: int64(e.At), Host: e.Host, Sent: e.Sent}
	switch in := e.In.(type) {
	case machine.Arrive:
		l.In, l.Peer, l.Refuse, l.Bytes = "arrive", uint32(in.From), in.Refuse, hex.EncodeToString(in.Bytes)
	case machine.Submit:
		l.In, l.Peer, l.Channel, l.Type, l.Bytes = "submit", uint32(in.To), in.Channel, in.Type,
			hex.EncodeToString(in.Payload)
	case machine.Command:
		l.In, l.Peer, l.Command, l.Bytes = "command", uint32(in.Peer), in.Kind.String(), hex.EncodeToString(in.Payload)
	case machine.Open:
		l.In, l.Peer = "open", uint32(in.Peer)
	case machine.Bytes:
		l.In, l.Peer, l.Bytes = "bytes", uint32(in.From), hex.EncodeToString(in.Bytes)
	case machine.Close:
		l.In, l.Peer = "close", uint32(in.Peer)
	case machine.Wake:
		l.In = "wake"
	}
	return l
}

// maxLine is the longest line: an input has a datagram or a segment, in
// hexadecimal.
const maxLine = 4 << 20

// ReadJournal reads a journal's text. Its errors name the line, what it
// expected, and what it found.
func ReadJournal(r io.Reader) (*Journal, error) {
	text := bufio.NewScanner(r)
	text.Buffer(nil, maxLine)
	if !text.Scan() {
		if err := text.Err(); err != nil {
			return nil, fmt.Errorf("journal line 1: %w", err)
		}
		return nil, errors.New("journal line 1: expected its header, found an empty file")
	}
	var head headerLine
	if err := strictly(text.Bytes(), &head); err != nil {
		return nil, fmt.Errorf("journal line 1: expected its header {\"journal\":%d,...}, found %s: %w", versionDigests,
			lineOf(text.Bytes()), err)
	}
	if head.Journal != versionPlain && head.Journal != versionDigests {
		return nil, fmt.Errorf("journal line 1: version %d, expected %d or %d", head.Journal, versionPlain, versionDigests)
	}
	j := &Journal{Seed: head.Seed, Note: head.Note, Digests: head.Journal == versionDigests}
	ended := false
	n := 2
	for ; text.Scan(); n++ {
		if ended {
			return nil, fmt.Errorf("journal line %d: expected nothing behind the last line, found %s", n, lineOf(text.Bytes()))
		}
		var l anyLine
		if err := strictly(text.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("journal line %d: expected an input, found %s: %w", n, lineOf(text.Bytes()), err)
		}
		if l.End != nil && j.Digests {
			if *l.End != len(j.Entries) {
				return nil, fmt.Errorf("journal line %d: expected %d inputs before it, found %d", n, *l.End, len(j.Entries))
			}
			ended = true
			continue
		}
		in, err := l.input()
		if err != nil {
			return nil, fmt.Errorf("journal line %d: %w", n, err)
		}
		j.Entries = append(j.Entries, Entry{At: machine.Instant(l.At), Host: l.Host, In: in, Sent: l.Sent})
	}
	if err := text.Err(); err != nil {
		return nil, fmt.Errorf("journal line %d: %w", n, err)
	}
	j.Cut = j.Digests && !ended
	return j, nil
}

// strictly decodes one line and refuses unknown fields. Its errors quote
// nothing of the line, since the user may have given a file of keys by mistake.
func strictly(line []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the line is cut short")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is no JSON from byte %d on", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("%s is of another kind", printable.Word(kind.Field))
	}
	return errors.New("it has a field that is not known")
}

// lineOf describes a line without quoting it.
func lineOf(line []byte) string { return fmt.Sprintf("another line of %d bytes", len(line)) }

func (l *entryLine) input() (machine.Input, error) {
	b, err := hex.DecodeString(l.Bytes)
	if err != nil {
		return nil, errors.New("bytes: expected hexadecimal digits, two for each byte")
	}
	peer := machine.Peer(l.Peer)
	switch l.In {
	case "arrive":
		return machine.Arrive{From: peer, Bytes: b, Refuse: l.Refuse}, nil
	case "submit":
		return machine.Submit{To: peer, Channel: l.Channel, Type: l.Type, Payload: b}, nil
	case "command":
		kind, ok := machine.ParseCommandKind(l.Command)
		if !ok {
			return nil, fmt.Errorf("expected a command such as %q, found another", machine.Connect)
		}
		return machine.Command{Peer: peer, Kind: kind, Payload: b}, nil
	case "open":
		return machine.Open{Peer: peer}, nil
	case "bytes":
		return machine.Bytes{From: peer, Bytes: b}, nil
	case "close":
		return machine.Close{Peer: peer}, nil
	case "wake":
		return machine.Wake{}, nil
	}
	return nil, errors.New("expected the input arrive, submit, command, open, bytes, close or wake, found another")
}

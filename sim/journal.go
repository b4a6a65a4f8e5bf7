package sim

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ackscope/ackscope/machine"
)

// Journal is all inputs of a run, in order. With the endpoints as they were at
// its start it gives the run again, byte for byte: no link and no random number
// is needed for that.
type Journal struct {
	Seed    uint64
	Note    map[string]string // whatever the recorder needs to build the endpoints again
	Entries []Entry
}

// Entry is one input: when and to which host (by Host.Index).
type Entry struct {
	At   machine.Instant
	Host int
	In   machine.Input
}

// Record gives a journal that fills as the world runs.
func (w *World) Record() *Journal {
	j := &Journal{Seed: w.seed}
	w.Watch(func(s *Step) {
		j.Entries = append(j.Entries, Entry{At: s.At, Host: s.Host.Index, In: keep(s.In)})
	})
	return j
}

// keep copies an input and the bytes that it borrows.
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

// Play steps fresh endpoints (by host index) through the journal and tells each
// step's effects. It fails where the journal names an endpoint that is not
// there or an endpoint refuses an input.
func (j *Journal) Play(endpoints []machine.Endpoint, watch func(e *Entry, out *machine.Effects)) error {
	var out machine.Effects
	for i := range j.Entries {
		e := &j.Entries[i]
		if e.Host < 0 || e.Host >= len(endpoints) {
			return fmt.Errorf("journal entry %d: host %d, expected one of %d", i+1, e.Host, len(endpoints))
		}
		out.Reset()
		if err := endpoints[e.Host].Step(e.At, e.In, &out); err != nil {
			return fmt.Errorf("journal entry %d: %w", i+1, err)
		}
		watch(e, &out)
	}
	return nil
}

// A journal's text is JSON Lines: the header {"journal":1,...}, then one line
// an input, bytes in hexadecimal.
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
}

// WriteTo writes the journal's text.
func (j *Journal) WriteTo(w io.Writer) (int64, error) {
	counted := &counter{w: w}
	lines, err := NewJournalWriter(counted, j.Seed, j.Note)
	for i := range j.Entries {
		if err != nil {
			break
		}
		err = lines.Write(&j.Entries[i])
	}
	if err == nil {
		err = lines.Flush()
	}
	return counted.n, err
}

// JournalWriter writes a journal's text as the run goes on.
type JournalWriter struct {
	buffered *bufio.Writer
	lines    *json.Encoder
}

// NewJournalWriter writes the header. The same seed and a note whose values are
// as long give a header that is as long.
func NewJournalWriter(w io.Writer, seed uint64, note map[string]string) (*JournalWriter, error) {
	buffered := bufio.NewWriter(w)
	j := &JournalWriter{buffered: buffered, lines: json.NewEncoder(buffered)}
	return j, j.lines.Encode(headerLine{Journal: 1, Seed: seed, Note: note})
}

// Write appends one input.
func (j *JournalWriter) Write(e *Entry) error { return j.lines.Encode(e.line()) }

// Flush hands what was written to the underlying writer.
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
	l := entryLine{At: int64(e.At), Host: e.Host}
	switch in := e.In.(type) {
	case machine.Arrive:
		l.In, l.Peer, l.Refuse, l.Bytes = "arrive", uint32(in.From), in.Refuse, hex.EncodeToString(in.Bytes)
	case machine.Submit:
		l.In, l.Peer, l.Channel, l.Type, l.Bytes = "submit", uint32(in.To), in.Channel, in.Type, hex.EncodeToString(in.Payload)
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

// ReadJournal reads a journal's text. Its errors name the line.
func ReadJournal(r io.Reader) (*Journal, error) {
	lines := json.NewDecoder(bufio.NewReader(r))
	lines.DisallowUnknownFields()
	var head headerLine
	if err := lines.Decode(&head); err != nil {
		return nil, fmt.Errorf("journal line 1: expected its header: %w", err)
	}
	if head.Journal != 1 {
		return nil, fmt.Errorf("journal line 1: version %d, expected 1", head.Journal)
	}
	j := &Journal{Seed: head.Seed, Note: head.Note}
	for n := 2; ; n++ {
		var l entryLine
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			return j, nil
		} else if err != nil {
			return nil, fmt.Errorf("journal line %d: %w", n, err)
		}
		in, err := l.input()
		if err != nil {
			return nil, fmt.Errorf("journal line %d: %w", n, err)
		}
		j.Entries = append(j.Entries, Entry{At: machine.Instant(l.At), Host: l.Host, In: in})
	}
}

func (l *entryLine) input() (machine.Input, error) {
	b, err := hex.DecodeString(l.Bytes)
	if err != nil {
		return nil, fmt.Errorf("bytes: %w", err)
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
			return nil, fmt.Errorf("command %q, expected one such as %q", l.Command, machine.Connect)
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
	return nil, fmt.Errorf("input %q, expected arrive, submit, command, open, bytes, close or wake", l.In)
}

package gamelog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of what is read of a log.
const (
	// lineMost is how long a line may be. A line with 100 counters has 3 kB.
	lineMost = 64 << 10
	// entriesMost is how many lines are kept. They take 32 bytes each: 64 MB. They are nine
	// hours of a game that writes a line a frame, at 60 frames a second.
	entriesMost = 2 << 20
	// readingsMost is how many values of counters are kept. They take 16 bytes each.
	readingsMost = 4 << 20
	// namesMost is how many counters, peers and streams of sequence numbers are told apart.
	namesMost = 256
	// badKept is how many bad lines are named. Further ones are counted.
	badKept = 8
)

// Kind is what a line of a log says.
type Kind uint8

const (
	Other   Kind = iota // a frame, counters, or an event that has no meaning here
	Send                // the game handed a packet to the network
	Receive             // the game was handed a packet
)

// Entry is one line of a log.
type Entry struct {
	T        float64 // since the first line, in the log's own unit
	Sequence int64   // of the packet; -1 if there is none
	Frame    float32 // milliseconds that the game's frame took; -1 if the line does not say
	Line     uint32  // from 1
	Peer     uint8   // the other end, as an index into Log.Peers; 0 if the line does not say
	Stream   uint8   // which numbering Sequence belongs to, as an index into Log.Streams
	Kind     Kind
}

// Reading is the value of a counter in a line.
type Reading struct {
	Value float64
	Entry uint32 // index into Log.Entries
	Name  uint8  // index into Log.Names
}

// BadLine says why a line was left out.
type BadLine struct {
	Line   int // from 1
	Reason string
}

// Log is a game's log as it was read.
type Log struct {
	Name     string // of the file, as the user gave it
	Entries  []Entry
	Readings []Reading
	Names    []string // of the counters
	Peers    []string // names or addresses of other ends; the first is empty
	Streams  []string // names of numberings; the first is empty
	Bad      []BadLine
	BadCount int
	Lines    int
	Frames   int  // entries that say how long a frame took
	Written  bool // times are written as dates: the unit is known
	More     bool // the file goes on beyond what is kept

	base     stamp
	based    bool
	quantum  float64 // what all times are rounded to, in the log's unit: 1, 0.1, 0.01 …
	names    map[string]uint8
	peers    map[string]uint8
	streams  map[string]uint8
	overflow bool
}

// ErrNoLines says that a file has no line of a log.
var ErrNoLines = errors.New("no line is a JSON object with a time \"t\"")

// Read reads a log. Lines that are no entry are left out, and counted with their reason. The
// error is that of the reader, or ErrNoLines.
func Read(name string, r io.Reader) (*Log, error) {
	l := &Log{
		Name: name, quantum: 1, Peers: []string{""}, Streams: []string{""},
		names: map[string]uint8{}, peers: map[string]uint8{}, streams: map[string]uint8{},
	}
	in := bufio.NewReaderSize(r, lineMost)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			l.Lines++
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
				l.bad("the line is longer than 64 KiB")
				for errors.Is(err, bufio.ErrBufferFull) {
					_, err = in.ReadSlice('\n')
				}
			default:
				l.line(line)
			}
		}
		if l.More = len(l.Entries) == entriesMost; l.More {
			break
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(l.Entries) == 0 {
		if len(l.Bad) > 0 {
			return nil, fmt.Errorf("%w (line %d: %s)", ErrNoLines, l.Bad[0].Line, l.Bad[0].Reason)
		}
		return nil, ErrNoLines
	}
	return l, nil
}

func (l *Log) bad(reason string) {
	if l.BadCount++; len(l.Bad) < badKept {
		l.Bad = append(l.Bad, BadLine{l.Lines, reason})
	}
}

// line reads one line.
func (l *Log) line(text []byte) {
	if len(strings.TrimSpace(string(text))) == 0 {
		return
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		l.bad("it is no JSON object: " + err.Error())
		return
	}
	at, written, reason := timeOf(fields)
	if reason != "" {
		l.bad(reason)
		return
	}
	if !l.based {
		l.base, l.based, l.Written = at, true, written
	}
	if written != l.Written {
		l.bad("the time is a date in some lines and a number in others")
		return
	}
	l.quantum = min(l.quantum, at.quantum())
	e := Entry{T: at.since(l.base), Sequence: -1, Frame: -1, Line: uint32(l.Lines)}
	if reason := l.frame(&e, fields); reason != "" {
		l.bad(reason)
		return
	}
	l.event(&e, fields)
	l.Entries = append(l.Entries, e)
	l.counters("", fields, 1)
}

// frame reads how long the game's frame took.
func (l *Log) frame(e *Entry, fields map[string]json.RawMessage) (reason string) {
	for _, key := range []string{"frame_ms", "frame_time_ms", "dt_ms"} {
		raw, ok := fields[key]
		if !ok {
			continue
		}
		v, ok := number(raw)
		if !ok || v < 0 || v > frameMost {
			return fmt.Sprintf("%q is no time in milliseconds, 0 to 86,400,000", key)
		}
		e.Frame = float32(v)
		l.Frames++
		return ""
	}
	return ""
}

// frameMost is the longest frame in milliseconds: a day. Source: bound, what a game logs
const frameMost = 86_400_000

// sendWords and receiveWords are the events that move a packet, in lower case.
var (
	sendWords    = map[string]bool{"send": true, "sent": true, "tx": true, "packet_sent": true, "send_packet": true}
	receiveWords = map[string]bool{
		"receive": true, "received": true, "rx": true, "recv": true, "packet_received": true, "receive_packet": true,
	}
)

// event reads what happened, the packet's number, and who the other end is.
func (l *Log) event(e *Entry, fields map[string]json.RawMessage) {
	word, _ := text(fields["event"])
	switch word = strings.ToLower(word); {
	case sendWords[word]:
		e.Kind = Send
	case receiveWords[word]:
		e.Kind = Receive
	}
	for _, key := range []string{"sequence", "seq", "sequence64"} {
		if v, ok := whole(fields[key]); ok && v >= 0 {
			e.Sequence = v
			break
		}
	}
	e.Peer = l.intern(l.peers, &l.Peers, fields, "peer", "addr", "remote", "client", "client_id", "conn", "player")
	if e.Sequence >= 0 {
		e.Stream = l.intern(l.streams, &l.Streams, fields, "channel", "mode")
	}
}

// intern returns the number of the first of the fields that is there, or 0.
func (l *Log) intern(known map[string]uint8, list *[]string, fields map[string]json.RawMessage, keys ...string) uint8 {
	for _, key := range keys {
		name, ok := text(fields[key])
		if !ok {
			var v int64
			if v, ok = whole(fields[key]); !ok {
				continue
			}
			name = fmt.Sprintf("%s %d", key, v)
		}
		if n, ok := known[name]; ok {
			return n
		}
		if len(*list) == namesMost {
			l.overflow = true
			return 0
		}
		n := uint8(len(*list))
		*list, known[name] = append(*list, name), n
		return n
	}
	return 0
}

// notCounters are numbers of a line that count nothing.
var notCounters = map[string]bool{
	"t": true, "time": true, "ts": true, "timestamp": true, "frame_ms": true, "frame_time_ms": true, "dt_ms": true,
	"sequence": true, "seq": true, "sequence64": true, "peer": true, "client": true, "client_id": true, "conn": true,
	"player": true, "channel": true, "mode": true,
}

// counters reads the other numbers of a line, and those of objects in it.
func (l *Log) counters(prefix string, fields map[string]json.RawMessage, deeper int) {
	for key, raw := range fields {
		if prefix == "" && notCounters[key] || len(raw) == 0 || len(prefix)+len(key) > 64 {
			continue
		}
		if raw[0] == '{' && deeper > 0 {
			var inner map[string]json.RawMessage
			if json.Unmarshal(raw, &inner) == nil {
				l.counters(key+".", inner, deeper-1)
			}
			continue
		}
		v, ok := number(raw)
		if !ok || len(l.Readings) == readingsMost {
			continue
		}
		name := prefix + key
		n, ok := l.names[name]
		if !ok {
			if len(l.Names) == namesMost-1 {
				l.overflow = true
				continue
			}
			n = uint8(len(l.Names))
			l.Names, l.names[name] = append(l.Names, name), n
		}
		l.Readings = append(l.Readings, Reading{v, uint32(len(l.Entries) - 1), n})
	}
}

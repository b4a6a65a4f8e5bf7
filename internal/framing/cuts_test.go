package framing

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/stream"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// formats are the framings that the program tries, in its order.
func formats() (out []stream.Format) {
	for _, p := range []*dissect.Protocol{riptide.Protocol, srdp.Protocol} {
		for _, f := range p.Framings {
			out = append(out, stream.Format(f))
		}
	}
	return out
}

// segment is a TCP segment of a connection.
type segment struct {
	from machine.Side
	capture.Packet
}

// connection is a TCP connection of a capture, in the order of the tap.
type connection struct {
	name     string
	segments []segment
}

// place is where a message lies in the stream of its sender.
type place struct {
	from   machine.Side
	body   uint32 // the sequence number of its first byte after the prefix
	length int
}

// message is a message that was read.
type message struct {
	place
	prefix int
	grade  machine.Certainty
	bytes  int // how many of its bytes were there
}

// read cuts the segments into messages.
func read(segments []segment) (out []message, format *stream.Format) {
	conn := stream.New(formats(), stream.Limits{})
	type span struct {
		ref    machine.Ref
		offset int
		seq    uint32
		length int
	}
	spans := map[machine.Ref][]span{}
	var result stream.Output
	keep := func() {
		for _, m := range result.Messages {
			at := place{m.From, 0, m.Length}
			first := m.Spans[0]
			for _, s := range spans[first.Ref] {
				if first.Offset >= s.offset && first.Offset < s.offset+s.length {
					at.body = s.seq + uint32(first.Offset-s.offset)
				}
			}
			out = append(out, message{at, m.Prefix, m.Grade, len(m.Bytes)})
		}
	}
	for i := range segments {
		s := &segments[i]
		seq := s.TCPSeq
		for _, x := range s.Spans {
			spans[s.Ref] = append(spans[s.Ref], span{x.Ref, x.Offset, seq, x.Length})
			seq += uint32(x.Length)
		}
		conn.Feed(s.from, &s.Packet, &result)
		keep()
	}
	conn.Finish(&result)
	keep()
	return out, conn.Format()
}

// connections reads the TCP connections of a capture.
func connections(t testing.TB, path string) (out []*connection) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	type ends struct{ low, high netip.AddrPort }
	known, first := map[ends]*connection{}, map[*connection]netip.AddrPort{}
	decoder := capture.NewDecoder(capture.DecodeOptions{})
	var frame capture.Frame
	var packet capture.Packet
	for {
		if err := in.Next(&frame); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		decoder.Decode(&frame, &packet)
		if packet.Transport != capture.TCP || packet.Duplicate {
			continue
		}
		k := ends{packet.Src, packet.Dst}
		if k.high.Compare(k.low) < 0 {
			k.low, k.high = k.high, k.low
		}
		c := known[k]
		if c == nil {
			c = &connection{name: fmt.Sprintf("%s#%d", filepath.Base(path), len(out))}
			known[k], first[c] = c, packet.Src
			out = append(out, c)
		}
		s := segment{machine.A, packet}
		if packet.Src != first[c] {
			s.from = machine.B
		}
		s.Payload, s.Spans = slices.Clone(packet.Payload), slices.Clone(packet.Spans)
		c.segments = append(c.segments, s)
	}
}

// cut returns the segments from the one with index at. The first skip bytes of the payload of that
// segment are missing.
func (c *connection) cut(at, skip int) []segment {
	out := slices.Clone(c.segments[at:])
	s := &out[0]
	s.TCPFlags &^= 2
	skip = min(skip, len(s.Payload))
	s.TCPSeq += uint32(skip)
	s.Payload, s.Length = s.Payload[skip:], s.Length-skip
	s.Spans = slices.Clone(s.Spans)
	for skip > 0 {
		n := min(skip, s.Spans[0].Length)
		s.Spans[0].Offset += n
		s.Spans[0].Length -= n
		skip -= n
		if s.Spans[0].Length == 0 {
			s.Spans = s.Spans[1:]
		}
	}
	return out
}

// outcome is what the reading of a cut connection gave, beside that of the whole.
type outcome struct {
	expected int       // messages of the whole that lie behind the cut
	wrong    []message // read, but no message of the whole
	missing  []message // of the whole, behind the cut, and not read
}

// hold compares the messages of a cut connection with those of the whole.
func hold(whole []message, cut []segment) (o outcome) {
	var from [2]uint32
	var joined [2]bool
	for i := range cut {
		if s := &cut[i]; s.Length > 0 && !joined[s.from] {
			from[s.from], joined[s.from] = s.TCPSeq, true
		}
	}
	found := map[place]bool{}
	for _, m := range whole {
		found[m.place] = false
	}
	got, _ := read(cut)
	for _, m := range got {
		if _, known := found[m.place]; !known {
			o.wrong = append(o.wrong, m)
			continue
		}
		found[m.place] = true
	}
	for _, m := range whole {
		if joined[m.from] && int32(m.body-uint32(m.prefix)-from[m.from]) >= 0 {
			o.expected++
			if !found[m.place] {
				o.missing = append(o.missing, m)
			}
		}
	}
	return o
}

// few is how many messages behind a cut need not be found. The last answers of
// both sides have a few bytes each, and look like any other bytes.
const few = 8

// TestCuts begins the TCP captures of testdata at frames and at bytes of any
// place. The uncut stream says where each message lies.
//
// A capture begins with a segment. So no message may be wrong where the cut is
// one of frames, and all but the first of each side must be read. A cut within
// a segment takes away the evidence of its first byte. There, the first message
// of a side may be wrong, which is graded likely, in one of 200 cuts.
func TestCuts(t *testing.T) {
	rounds := 20
	if testenv.Whole() {
		rounds = 400
	}
	paths, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "t*.pcap*.gz"))
	if err != nil || len(paths) < 11 {
		t.Fatalf("%d captures of TCP in testdata/pcaps, expected 11 or more (%v)", len(paths), err)
	}
	cuts, misled, first := 0, 0, 0
	for _, path := range paths {
		for _, c := range connections(t, path) {
			whole, format := read(c.segments)
			if format == nil {
				t.Fatalf("%s: no framing is found in the whole", c.name)
			}
			rng := rand.New(rand.NewPCG(21, uint64(len(c.segments))))
			for round := range rounds {
				at := rng.IntN(len(c.segments))
				skip := 0
				if round%2 == 1 {
					skip = rng.IntN(1 + len(c.segments[at].Payload))
				}
				o := hold(whole, c.cut(at, skip))
				where := fmt.Sprintf("%s from segment %d of %d, byte %d", c.name, at, len(c.segments), skip)
				cuts++
				first += min(len(o.missing), 2)
				if len(o.missing) > 2 && o.expected > few {
					t.Errorf("%s: %d of %d messages are not read, the first %+v", where, len(o.missing), o.expected, o.missing[0])
				}
				if len(o.wrong) > 0 {
					misled++
					if skip == 0 || len(o.wrong) > 2 || o.wrong[0].grade == machine.Certain {
						t.Errorf("%s: %d messages are none, the first %+v", where, len(o.wrong), o.wrong[0])
					}
				}
			}
		}
	}
	t.Logf("%d cuts, %d of them with a wrong first message; %d first messages not read", cuts, misled, first)
	if misled*200 > cuts {
		t.Errorf("%d of %d cuts give a wrong first message, expected at most one of 200", misled, cuts)
	}
}

package stream

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// toyFormats frame a protocol whose messages begin with a byte below 11.
var toyFormats = []Format{
	{Name: "4", Prefix: 4, Max: 65535, Usual: 1231, Weigh: weighToy},
	{Name: "2", Prefix: 2, Max: 65535, Usual: 1231, Weigh: weighToy},
	{Name: "4 big", Prefix: 4, BigEndian: true, Max: 65535, Usual: 1231, Weigh: weighToy},
	{Name: "2 big", Prefix: 2, BigEndian: true, Max: 65535, Usual: 1231, Weigh: weighToy},
}

func weighToy(b []byte, length int) float64 {
	if b[0] >= 11 {
		return -1
	}
	return 4
}

// source generates a stream of messages, and segments of it.
type source struct {
	rng      *rand.Rand
	messages [][]byte
	ends     []int // of each message in stream
	stream   []byte
	isn      uint32
	frames   map[machine.Ref][]byte // payload of each frame
	frame    uint64
}

func newSource(seed int64, n, largest int, f *Format) *source {
	s := &source{rng: rand.New(rand.NewSource(seed)), frames: map[machine.Ref][]byte{}}
	s.isn = s.rng.Uint32()
	if seed%3 == 0 {
		s.isn = 0xffffffff - uint32(s.rng.Intn(5000)) // wraps within the stream
	}
	for range n {
		m := make([]byte, 1+s.rng.Intn(largest))
		s.rng.Read(m)
		m[0] %= 11
		var prefix [8]byte
		switch {
		case f.Prefix == 4 && f.BigEndian:
			binary.BigEndian.PutUint32(prefix[:], uint32(len(m)))
		case f.Prefix == 4:
			binary.LittleEndian.PutUint32(prefix[:], uint32(len(m)))
		case f.BigEndian:
			binary.BigEndian.PutUint16(prefix[:], uint16(len(m)))
		default:
			binary.LittleEndian.PutUint16(prefix[:], uint16(len(m)))
		}
		s.stream = append(append(s.stream, prefix[:f.Prefix]...), m...)
		s.messages = append(s.messages, m)
		s.ends = append(s.ends, len(s.stream))
	}
	return s
}

// packet makes the segment of stream[from:to].
func (s *source) packet(from, to int, flags uint8) *capture.Packet {
	s.frame++
	p := &capture.Packet{
		Ref: machine.MakeRef(0, s.frame), At: machine.Instant(s.frame) * 1000, Transport: capture.TCP,
		TCPSeq: s.isn + 1 + uint32(from), TCPFlags: flags | ack, Payload: s.stream[from:to], Length: to - from,
	}
	p.Spans = []capture.Span{{Ref: p.Ref, Offset: 54, Length: len(p.Payload)}}
	s.frames[p.Ref] = p.Payload
	return p
}

func (s *source) syn() *capture.Packet {
	p := s.packet(0, 0, syn)
	p.TCPSeq, p.TCPFlags = s.isn, syn
	return p
}

// segments cuts stream[from:] at random places.
func (s *source) segments(from, largest int) (out []*capture.Packet) {
	for from < len(s.stream) {
		to := min(from+1+s.rng.Intn(largest), len(s.stream))
		out = append(out, s.packet(from, to, 0))
		from = to
	}
	return out
}

// impair repeats some segments, some of them with other boundaries, and delays
// some.
func (s *source) impair(in []*capture.Packet, share float64) (out []*capture.Packet) {
	for i, p := range in {
		out = append(out, p)
		if s.rng.Float64() < share { // a retransmission with other boundaries
			q := *in[max(0, i-s.rng.Intn(3))]
			to := int(q.TCPSeq-s.isn-1) + q.Length
			from := max(0, int(q.TCPSeq-s.isn-1)-s.rng.Intn(100))
			out = append(out, s.packet(from, to, 0))
		}
	}
	for i := range out {
		if s.rng.Float64() < share {
			j := min(len(out)-1, i+1+s.rng.Intn(6))
			out[i], out[j] = out[j], out[i]
		}
	}
	for i, p := range out { // frames are numbered in the order of the tap
		q := *p
		s.frame++
		q.Ref, q.At = machine.MakeRef(0, s.frame), machine.Instant(s.frame)*1000
		q.Spans = []capture.Span{{Ref: q.Ref, Offset: 54, Length: len(q.Payload)}}
		s.frames[q.Ref] = q.Payload
		out[i] = &q
	}
	return out
}

type got struct {
	bytes []byte
	Message
}

// run feeds one direction and returns the messages.
func (s *source) run(t *testing.T, c *Conn, packets []*capture.Packet) (all []got) {
	t.Helper()
	var out Output
	last := machine.Instant(0)
	keep := func() {
		for _, m := range out.Messages {
			var joined []byte
			for _, sp := range m.Spans {
				if sp.Ref > m.Ref {
					t.Fatalf("message of frame %d has bytes of the later frame %d", m.Ref.Frame(), sp.Ref.Frame())
				}
				joined = append(joined, s.frames[sp.Ref][sp.Offset-54:][:sp.Length]...)
			}
			if !bytes.Equal(joined, m.Bytes) {
				t.Fatalf("message of frame %d: its spans %v hold other bytes", m.Ref.Frame(), m.Spans)
			}
			if m.At < last {
				t.Fatalf("message of frame %d comes after a later one", m.Ref.Frame())
			}
			last = m.At
			all = append(all, got{bytes: bytes.Clone(m.Bytes), Message: m})
		}
	}
	for _, p := range packets {
		c.Feed(machine.A, p, &out)
		keep()
	}
	c.Finish(&out)
	keep()
	return all
}

func compare(t *testing.T, want [][]byte, all []got) {
	t.Helper()
	if len(all) != len(want) {
		t.Fatalf("%d messages, want %d", len(all), len(want))
	}
	for i := range want {
		if !bytes.Equal(want[i], all[i].bytes) {
			t.Fatalf("message %d differs", i)
		}
		if all[i].Grade != machine.Certain {
			t.Fatalf("message %d is %s", i, all[i].Grade)
		}
	}
}

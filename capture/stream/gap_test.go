package stream

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// TestGaps omits segments that the receiver still acks.
func TestGaps(t *testing.T) {
	lost, messages := 0, 0
	for seed := range int64(60) {
		s := newSource(seed, 400, 200, &toyFormats[seed%2])
		c := New(toyFormats, Limits{})
		var out Output
		var all []got
		c.Feed(machine.A, s.syn(), &out)
		missing := make([]bool, len(s.stream)+1)
		for _, p := range s.segments(0, 150) {
			at := int(p.TCPSeq - s.isn - 1)
			if s.rng.Float64() < 0.05 {
				for i := range p.Length {
					missing[at+i] = true
				}
			} else {
				c.Feed(machine.A, p, &out)
				for _, m := range out.Messages {
					all = append(all, got{bytes.Clone(m.Bytes), m})
				}
			}
			answer := s.packet(0, 0, 0)
			answer.TCPSeq, answer.TCPAck = 1, p.TCPSeq+uint32(p.Length)
			c.Feed(machine.B, answer, &out)
			for _, m := range out.Messages {
				all = append(all, got{bytes.Clone(m.Bytes), m})
			}
		}
		c.Finish(&out)
		for _, m := range out.Messages {
			all = append(all, got{bytes.Clone(m.Bytes), m})
		}
		next := 0
		for i, m := range s.messages {
			begin := s.ends[i] - len(m) - toyFormats[seed%2].Prefix
			whole := !bytes.Contains(boolBytes(missing[begin:s.ends[i]]), []byte{1})
			messages++
			found := -1
			for j := next; j < min(next+4, len(all)); j++ {
				if bytes.Equal(all[j].bytes, m) && all[j].Length == len(m) {
					found = j
					break
				}
			}
			if found >= 0 {
				next = found + 1
			} else if whole {
				lost++
			}
		}
		for _, m := range all {
			if m.Grade == machine.Certain && m.Length == len(m.bytes) && !s.has(m.bytes) {
				t.Fatalf("seed %d: a certain message that was never sent", seed)
			}
		}
	}
	// A complete message between two gaps may not be found again; that happens to
	// one in some tens.
	if lost*20 > messages {
		t.Errorf("%d of %d messages that were captured whole are not found", lost, messages)
	}
	t.Logf("%d of %d messages captured whole not found again", lost, messages)
}

func boolBytes(v []bool) (out []byte) {
	for _, x := range v {
		if x {
			out = append(out, 1)
		} else {
			out = append(out, 0)
		}
	}
	return out
}

func (s *source) has(m []byte) bool {
	for _, k := range s.messages {
		if bytes.Equal(k, m) {
			return true
		}
	}
	return false
}

// TestGapWithinMessage: the prefix says where the framing continues, and the
// rest of the damaged message is returned.
func TestGapWithinMessage(t *testing.T) {
	s := newSource(2, 20, 10, &toyFormats[0])
	big := make([]byte, 1000)
	s.stream = append(binary.LittleEndian.AppendUint32(s.stream, 1000), big...)
	s.stream = append(binary.LittleEndian.AppendUint32(s.stream, 3), 1, 2, 3)
	begin := len(s.stream) - 7 - 1000
	packets := []*capture.Packet{s.syn(), s.packet(0, begin+100, 0), s.packet(begin+500, len(s.stream), 0)}
	all := s.run(t, New(toyFormats, Limits{}), packets)
	if len(all) != 22 || all[20].Length != 1000 || len(all[20].bytes) != 100 ||
		!bytes.Equal(all[21].bytes, []byte{1, 2, 3}) || all[21].Grade != machine.Certain {
		t.Fatalf("%d messages, %+v", len(all), all[20:])
	}
}

// TestSnapped cuts each segment as a snap length does.
func TestSnapped(t *testing.T) {
	s := newSource(4, 100, 300, &toyFormats[0])
	packets := []*capture.Packet{s.syn()}
	from := 0
	for _, end := range s.ends {
		p := s.packet(from, end, 0)
		p.Payload = p.Payload[:min(20, len(p.Payload))]
		p.Spans[0].Length = len(p.Payload)
		packets = append(packets, p)
		from = end
	}
	all := s.run(t, New(toyFormats, Limits{}), packets)
	if len(all) != len(s.messages) {
		t.Fatalf("%d messages, want %d", len(all), len(s.messages))
	}
	for i, m := range all {
		want := s.messages[i][:min(16, len(s.messages[i]))]
		if m.Length != len(s.messages[i]) || !bytes.Equal(m.bytes, want) {
			t.Fatalf("message %d: %d of %d bytes", i, len(m.bytes), m.Length)
		}
	}
}

package analyze

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// made is a capture that is made while it is read.
type made struct {
	frames  int
	fill    func(frame []byte, n int) []byte
	read    int
	rewound int
	frame   []byte
}

const linkEthernet = 1

func (c *made) Next(f *capture.Frame) error {
	if c.read == c.frames {
		return io.EOF
	}
	n := c.read
	c.read++
	c.frame = c.fill(append(c.frame[:0], ethernetIPv4...), n)
	*f = capture.Frame{
		Ref: machine.MakeRef(0, uint64(n)+1), At: machine.Instant(n) * 1e6, LinkType: linkEthernet, Length: len(c.frame),
		Data: c.frame,
	}
	return nil
}

func (c *made) Close() error       { return nil }
func (c *made) MayReadAhead() bool { return true }
func (c *made) Rewind() error {
	c.read = 0
	c.rewound++
	return nil
}

var ethernetIPv4 = []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0}

// ipv4 appends a header with so many bytes behind it.
func ipv4(b []byte, protocol byte, from, to [4]byte, length int) []byte {
	b = binary.BigEndian.AppendUint16(append(b, 0x45, 0), uint16(20+length))
	b = append(append(b, 0, 0, 0x40, 0, 64, protocol, 0, 0), from[:]...)
	return append(b, to[:]...)
}

// udp appends a header with so many bytes behind it.
func udp(b []byte, from, to uint16, length int) []byte {
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, from), to)
	return append(binary.BigEndian.AppendUint16(b, uint16(8+length)), 0, 0)
}

const (
	crowdClients = 97
	crowdBytes   = 3000
)

// crowd is a capture of many clients that talk to one server. Each datagram has crowdBytes, and no
// protocol explains them. So the flows hold more than all may hold whole. One client gets no answer.
// The frame quoteAt is an ICMP error.
func crowd(frames, quoteAt int) *made {
	return &made{frames: frames, fill: func(b []byte, n int) []byte {
		from, to := [4]byte{10, 0, 0, byte(n%crowdClients + 1)}, [4]byte{192, 0, 2, 1}
		source, target := uint16(5000), uint16(40000)
		if n/crowdClients%2 == 1 && !lonely(n) {
			from, to, source, target = to, from, target, source
		}
		if n == quoteAt {
			b = append(ipv4(b, 1, from, to, 8+20+8), 3, 3, 0, 0, 0, 0, 0, 0)
			return udp(ipv4(b, 17, to, from, 8+crowdBytes), target, source, crowdBytes)
		}
		b = udp(ipv4(b, 17, from, to, 8+crowdBytes), source, target, crowdBytes)
		return append(binary.BigEndian.AppendUint32(b, uint32(n)), make([]byte, crowdBytes-4)...)
	}}
}

// lonely reports whether a frame is of the client that gets no answer.
func lonely(frame int) bool { return frame%crowdClients == 0 }

// heldLengths notes how much was held of each datagram.
type heldLengths struct {
	sync.Mutex
	of map[machine.Ref]int
}

func (h *heldLengths) Reset()                   {}
func (h *heldLengths) Sure() bool               { return false }
func (h *heldLengths) Verdict() dissect.Verdict { return dissect.Verdict{} }
func (h *heldLengths) Feed(d *machine.Datagram) {
	h.Lock()
	defer h.Unlock()
	h.of[d.Ref] = len(d.Bytes)
}

// TestCrowd checks that any number of shards holds the same datagrams whole: what all flows held eight
// chunks before decides. No run is refused. From an ICMP error on, one session has all flows.
func TestCrowd(t *testing.T) {
	for _, quoteAt := range []int{-1, 3000, 6001} {
		var want map[machine.Ref]int
		for _, threads := range []int{1, 2, 3, 8} {
			h := &heldLengths{of: map[machine.Ref]int{}}
			p := &dissect.Protocol{Name: "none", Classify: func() dissect.Classifier { return h }}
			src := crowd(9000, quoteAt)
			s, err := Run(src, Options{Registry: dissect.NewRegistry(p), Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%d threads, ICMP error at %d", threads, quoteAt)
			if src.rewound > 0 || len(s.flows) != crowdClients {
				t.Errorf("%s: %d flows, refused %d times", name, len(s.flows), src.rewound)
			}
			if want == nil {
				want = h.of
				whole, most := 0, holdWhole/crowdBytes+chunksAhead*(chunkBytes/crowdBytes+1)
				for ref, n := range want {
					switch {
					case lonely(int(ref.Frame())-1) && n != crowdBytes, n != crowdBytes && n != holdHead:
						t.Fatalf("%s: %d bytes of frame %d are held", name, n, ref.Frame())
					case n == crowdBytes:
						whole++
					}
				}
				if whole < holdWhole/crowdBytes || whole > most+src.frames/crowdClients+1 {
					t.Errorf("%s: %d datagrams held whole, expected %d to %d", name, whole, holdWhole/crowdBytes, most)
				}
			} else if !maps.Equal(h.of, want) {
				t.Errorf("%s: other datagrams are held whole than with one", name)
			}
		}
	}
}

// TestWithinRooms checks which of its parts a shard may not exceed: half of each room, of two shards.
func TestWithinRooms(t *testing.T) {
	for _, x := range []struct {
		what                        string
		whole, unanswered, answered int
		partner, refuses            bool
	}{
		{"as much as it may", 500, 1000, 2000, false, false},
		{"too many whole datagrams without an answer", 501, 600, 0, false, true},
		{"too many heads without an answer", 0, 1001, 0, false, true},
		{"too many with an answer", 0, 0, 2001, false, true},
		{"a process, as much as it may", 500, 1000, 500, true, false},
		{"a process, too many with an answer", 0, 0, 501, true, true},
	} {
		s := &Session{wholeRoom: 1000, unansweredRoom: 2000, answeredRoom: 4000}
		s.waiting[0].wholeBytes, s.waiting[0].bytes, s.waiting[1].bytes = x.whole, x.unanswered, x.answered
		h := &shard{of: 2, strict: true, partner: x.partner, refused: &atomic.Bool{}}
		if h.withinRooms(s); h.refused.Load() != x.refuses {
			t.Errorf("%s: refused is %v", x.what, !x.refuses)
		}
	}
}

// TestManyPairs: one shard asks for the pairs of clients and servers, and the other has more of them
// than it may. Then the run is made again, by one session that remembers them all.
func TestManyPairs(t *testing.T) {
	const pairs = 40_000
	p := &dissect.Protocol{
		Name: "connections", Classify: testProtocol.Classify,
		NewTracker: func(*dissect.Config) machine.Tracker { return &connectionTracker{} },
	}
	for _, threads := range []int{1, 2} {
		src := &made{frames: pairs + 20, fill: func(b []byte, n int) []byte {
			if n < pairs { // one client asks very many ports
				b = udp(ipv4(b, 17, [4]byte{10, 0, 0, 1}, [4]byte{192, 0, 2, 1}, 8+4), 5000, uint16(n+1), 4)
				return append(b, mark('.', n)...)
			}
			op := byte('.')
			if n == pairs+15 {
				op = 'N' // the connection before ends, which asks
			}
			b = udp(ipv4(b, 17, [4]byte{10, 0, 0, 2}, [4]byte{192, 0, 2, 2}, 8+4), 5000, 40000, 4)
			return append(b, mark(op, n)...)
		}}
		s, err := Run(src, Options{Registry: dissect.NewRegistry(p), Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		if again := src.rewound; again != threads-1 || len(s.flows) != pairs+2 {
			t.Errorf("%d threads: read %d times again, %d flows", threads, again, len(s.flows))
		}
	}
}

// connectionTracker is a testTracker whose flows are connections of A.
type connectionTracker struct{ testTracker }

func (t *connectionTracker) Learned() machine.Facts {
	f := t.testTracker.Learned()
	f.Opened, f.Client = true, [2]bool{true}
	return f
}

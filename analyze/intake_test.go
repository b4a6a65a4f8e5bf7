package analyze

import (
	"maps"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// lender is a source that lends its buffers. It spoils each one as soon as it gets it back.
type lender struct {
	made
	swap    func([]byte) []byte
	buffer  []byte
	used    int
	buffers map[*byte]bool // that it ever had
	grows   bool           // later buffers are longer
}

func (l *lender) Lend(swap func([]byte) []byte) bool {
	l.swap = swap
	return true
}

func (l *lender) Next(f *capture.Frame) error {
	if err := l.made.Next(f); err != nil {
		return err
	}
	if l.used+len(f.Data) > len(l.buffer) {
		full := l.buffer
		if l.grows && len(l.buffers) == 3 {
			full = make([]byte, 2*len(full)) // it had to read a longer record
		}
		l.buffer, l.used = l.swap(full), 0
		if len(l.buffer) < len(full) {
			panic("a shorter buffer")
		}
		l.buffers[&l.buffer[0]] = true
		copy(l.buffer, slices.Repeat([]byte{0xee}, len(l.buffer)))
	}
	f.Data = l.buffer[l.used : l.used+copy(l.buffer[l.used:], f.Data)]
	l.used += len(f.Data)
	return nil
}

// TestLentBuffers: shards read frames where the source has them. It gets a buffer back when no shard
// needs its frames any more.
func TestLentBuffers(t *testing.T) {
	const frames, perBuffer, clients = 40 * chunkFrames, 100, 97
	fill := func(b []byte, n int) []byte {
		client, server := [4]byte{10, 0, 0, byte(n % clients)}, [4]byte{192, 0, 2, 1}
		return append(udp(ipv4(b, 17, client, server, 8+8), 5000, 40000, 8), mark('.', n)...)
	}
	bytesOf := func(src capture.Source, threads int) map[machine.Ref]string {
		h := &heldBytes{of: map[machine.Ref]string{}}
		p := &dissect.Protocol{Name: "none", Classify: func() dissect.Classifier { return h }}
		if _, err := Run(src, Options{Registry: dissect.NewRegistry(p), Threads: threads}); err != nil {
			t.Fatal(err)
		}
		return h.of
	}
	want := bytesOf(&made{frames: frames, fill: fill}, 1)
	if len(want) != frames {
		t.Fatalf("%d datagrams, expected all %d", len(want), frames)
	}
	for _, threads := range []int{2, 3, 8} {
		for _, grows := range []bool{false, true} {
			l := &lender{
				made: made{frames: frames, fill: fill}, buffer: make([]byte, perBuffer*(14+20+8+8)),
				buffers: map[*byte]bool{}, grows: grows,
			}
			if got := bytesOf(l, threads); !maps.Equal(got, want) {
				t.Errorf("%d threads, longer ones %v: %d datagrams, other bytes than with one thread", threads, grows, len(got))
			}
			if most := (chunksAhead+1)*(chunkFrames/perBuffer+1) + 3; len(l.buffers) > most {
				t.Errorf("%d threads: %d buffers, expected %d at most", threads, len(l.buffers), most)
			}
			if l.swap != nil || l.rewound > 0 {
				t.Errorf("%d threads: it lends at the end: %v, read %d times again", threads, l.swap != nil, l.rewound)
			}
		}
	}
}

// heldBytes notes the bytes of each datagram that a flow held.
type heldBytes struct {
	heldLengths
	of map[machine.Ref]string
}

func (h *heldBytes) Feed(d *machine.Datagram) {
	h.Lock()
	defer h.Unlock()
	h.of[d.Ref] = string(d.Bytes)
}

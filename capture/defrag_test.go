package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// fragmentOf makes the raw IP fragment that carries [from, to) of the IP
// payload of a UDP packet.
func fragmentOf(packet []byte, id uint32, from, to int, more bool) []byte {
	if packet[0]>>4 == 4 {
		b := append(bytes.Clone(packet[:20]), packet[20+from:20+to]...)
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		binary.BigEndian.PutUint16(b[4:], uint16(id))
		field := uint16(from / 8)
		if more {
			field |= 0x2000
		}
		binary.BigEndian.PutUint16(b[6:], field)
		b[10], b[11] = 0, 0
		binary.BigEndian.PutUint16(b[10:], ^onesComplement(0, b[:20]))
		return b
	}
	h := make([]byte, 8)
	h[0] = packet[6]
	field := uint16(from)
	if more {
		field |= 1
	}
	binary.BigEndian.PutUint16(h[2:], field)
	binary.BigEndian.PutUint32(h[4:], id)
	return extended(append(bytes.Clone(packet[:40]), packet[40+from:40+to]...), protocolFragment, h)
}

// feed decodes one raw IP packet.
func feed(t testing.TB, d *Decoder, n uint64, at time.Duration, data []byte, snap int, p *Packet) {
	t.Helper()
	f := Frame{
		Ref: machine.Ref(n), At: machine.Instant(at), LinkType: LinkRaw, Length: len(data),
		Data: data[:min(snap, len(data))],
	}
	d.Decode(&f, p)
	checkInvariants(t, &f, p)
}

func TestReassembly(t *testing.T) {
	for _, e := range []Envelope{four, six} {
		packet := udpPacket(t, e, strings.Repeat("0123456789", 20)) // 208 bytes of IP payload
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}} {
			d := NewDecoder(DecodeOptions{Verify: true})
			var p Packet
			for i, n := range order {
				from, to := n*96, min(n*96+96, 208) // the last has 16 bytes
				feed(t, d, uint64(i+1), 0, fragmentOf(packet, 7, from, to, n < 2), 1<<20, &p)
				if i < 2 && (p.Transport != Fragment || p.Length != to-from || p.Payload != nil || p.Src.Addr() != e.Src.Addr() ||
					p.Src.Port() != 0) {
					t.Errorf("%v, piece %d: %+v", order, i, p)
				}
			}
			if p.Transport != UDP || string(p.Payload) != strings.Repeat("0123456789", 20) || p.Length != 200 ||
				p.Fragments != 3 || p.IPID != 7 ||
				p.Src != e.Src || p.Dst != e.Dst || p.BadChecksum || p.Overlap || p.Problem != nil || p.Ref != 3 {
				t.Errorf("%v: %+v", order, p)
			}
			// The spans name the places where the fragments were captured.
			head := len(fragmentOf(packet, 7, 0, 8, true)) - 8
			var want []Span
			for n, length := range []int{88, 96, 16} {
				frame, offset := 0, head
				for i, o := range order {
					if o == n {
						frame = i + 1
					}
				}
				if n == 0 {
					offset += 8
				}
				want = append(want, Span{Ref: machine.Ref(frame), Offset: offset, Length: length})
			}
			if fmt.Sprint(p.Spans) != fmt.Sprint(want) {
				t.Errorf("%v: spans %v, expected %v", order, p.Spans, want)
			}
			if st := d.FragmentStats(); st != (FragmentStats{Fragments: 3, Reassembled: 1}) {
				t.Errorf("%v: %+v", order, st)
			}
		}
	}
}

// TestReassembledExtension: the fragmented part of an IPv6 packet may begin
// with more extension headers.
func TestReassembledExtension(t *testing.T) {
	packet := extended(udpPacket(t, six, strings.Repeat("x", 100)), 60, make6(17, 0, 1))
	d := NewDecoder(DecodeOptions{})
	var p Packet
	feed(t, d, 1, 0, fragmentOf(packet, 1, 64, 116, false), 1<<20, &p)
	feed(t, d, 2, 0, fragmentOf(packet, 1, 0, 64, true), 1<<20, &p)
	if p.Transport != UDP || p.Length != 100 || len(p.Payload) != 100 {
		t.Errorf("%+v", p)
	}
	if got := describe(&p); !strings.HasSuffix(got,
		" IPv6@0+40 IPv6 extension header@40+8 IPv6 extension header@48+8 UDP@56+8") {
		t.Errorf("layers: %s", got)
	}
	nested := extended(udpPacket(t, six, strings.Repeat("x", 100)), 44, []byte{17, 0, 0, 9, 0, 0, 0, 1})
	feed(t, d, 1, 0, fragmentOf(nested, 2, 64, 116, false), 1<<20, &p)
	feed(t, d, 2, 0, fragmentOf(nested, 2, 0, 64, true), 1<<20, &p)
	if p.Transport != NoTransport || p.Problem == nil ||
		!strings.Contains(p.Problem.Error(), "fragment headers: expected one, found 2") {
		t.Errorf("fragments in fragments: %+v", p)
	}
}

// TestReassemblyByModel compares with a model that keeps one owner per byte.
// The random fragments repeat, overlap, disagree and are cut by a snap length.
func TestReassemblyByModel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	complete, overlapped, cut := 0, 0, 0
	for round := range 4000 {
		e := []Envelope{four, six}[r.IntN(2)]
		size := 64 + 8*r.IntN(12) + r.IntN(8)
		d := NewDecoder(DecodeOptions{})
		head := len(fragmentOf(udpPacket(t, e, ""), 1, 0, 8, true)) - 8
		var p Packet
		type owned struct {
			covered, captured bool
			value             byte
		}
		model, total, disagree := make([]owned, size+8), -1, false
		for n := range uint64(60) {
			packet := udpPacket(t, e, string(bytes.Repeat([]byte{byte(n)}, size-8)))
			base := len(packet) - size
			copy(packet[base:], udpPacket(t, e, "")[base:]) // one UDP header for all, of length 8
			binary.BigEndian.PutUint16(packet[base+4:], uint16(size))
			from := 8 * r.IntN(size/8)
			to := min(from+8*(1+r.IntN(5)), size)
			more := to < size
			if more {
				to = min(to, size/8*8)
			}
			data := fragmentOf(packet, 9, from, to, more)
			snap := len(data)
			if r.IntN(12) == 0 {
				snap -= r.IntN(to - from)
			}
			feed(t, d, n+1, time.Duration(n)*time.Millisecond, data, snap, &p)
			// The model.
			for i := from; i < to; i++ {
				captured := i-from < snap-head
				if !model[i].covered {
					model[i] = owned{true, captured, packet[base+i]}
				} else if captured && model[i].captured && model[i].value != packet[base+i] {
					disagree = true
				}
			}
			if !more && total < 0 {
				total = to
			}
			whole := total >= 0
			for i := 0; whole && i < total; i++ {
				whole = model[i].covered
			}
			if whole != (p.Transport != Fragment) {
				t.Fatalf("round %d, fragment %d: %+v, the model says whole: %v", round, n, p, whole)
			}
			if !whole {
				continue
			}
			var want []byte
			for i := 0; i < total && model[i].captured; i++ {
				want = append(want, model[i].value)
			}
			if len(want) >= 8 && (p.Transport != UDP || !bytes.Equal(p.Payload, want[8:]) || p.Length != size-8) ||
				p.Overlap != disagree || p.Fragments != int(n+1) {
				t.Fatalf("round %d: %+v\nexpected % x, overlap %v, %d fragments", round, p, want, disagree, n+1)
			}
			complete++
			if disagree {
				overlapped++
			}
			if len(want) < total {
				cut++
			}
			break
		}
	}
	if complete < 3000 || overlapped < 1000 || cut < 300 {
		t.Errorf("too little was tried: %d complete, %d with overlaps, %d cut", complete, overlapped, cut)
	}
}

func TestFragmentFaults(t *testing.T) {
	packet := udpPacket(t, four, strings.Repeat("x", 100))
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"length not of 8": {
			fragmentOf(packet, 1, 0, 63, true),
			"fragment length: expected a multiple of 8, since more follow, found 63",
		},
		"beyond the end": {
			with(fragmentOf(packet, 1, 0, 64, true), 6, 0x3f, 0xff),
			"fragment end: expected at most 65535, found 65592",
		},
		"without contents": {fragmentOf(packet, 1, 0, 0, true), "fragment length: expected at least 1, found 0"},
	} {
		var p Packet
		d := NewDecoder(DecodeOptions{})
		feed(t, d, 1, 0, c.data, 1<<20, &p)
		if p.Transport != Fragment || p.Problem == nil || !strings.HasSuffix(p.Problem.Error(), c.want) ||
			d.FragmentStats().Held != 0 {
			t.Errorf("%s: %+v, problem %v", name, p, p.Problem)
		}
	}
	// Every other eight bytes of the longest datagram: more pieces than any link
	// produces.
	long := udpPacket(t, four, strings.Repeat("x", 65000))
	d := NewDecoder(DecodeOptions{})
	var p Packet
	for i := range maxPieces + 1 {
		feed(t, d, uint64(i+1), 0, fragmentOf(long, 3, i*16, i*16+8, true), 1<<20, &p)
	}
	if p.Problem == nil || !strings.Contains(p.Problem.Error(), "at most 2048 pieces") || d.FragmentStats().Held != 0 {
		t.Errorf("after %d pieces: %+v, %+v", maxPieces+1, p, d.FragmentStats())
	}
}

// TestFragmentsAreBounded sends first fragments without any that follow.
func TestFragmentsAreBounded(t *testing.T) {
	for _, c := range []struct {
		o           DecodeOptions
		count, size int
	}{
		{DecodeOptions{}, 1024, 16 << 20},
		{DecodeOptions{FragmentDatagrams: 10}, 10, 16 << 20},
		{DecodeOptions{FragmentBytes: 100 << 10}, 1024, 100 << 10},
	} {
		d := NewDecoder(c.o)
		packet := udpPacket(t, six, strings.Repeat("x", 60000))
		var p Packet
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const n = 20000
		for i := range uint64(n) {
			data := fragmentOf(packet, uint32(i), 0, 1232, true)
			f := Frame{Ref: machine.Ref(i + 1), At: machine.Instant(i), LinkType: LinkRaw, Length: len(data), Data: data}
			d.Decode(&f, &p)
		}
		st := d.FragmentStats()
		if st.Held > c.count || st.HeldBytes > c.size || st.Evicted+uint64(st.Held) != n {
			t.Errorf("%+v: %+v", c.o, st)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if held := int(after.HeapAlloc) - int(before.HeapAlloc); held > 2*c.size+8<<20 {
			t.Errorf("%+v: %d bytes are held", c.o, held)
		}
	}
}

// TestFragmentTimeout: a datagram is dropped 30 s after its first fragment, by
// capture time, forwards and backwards.
func TestFragmentTimeout(t *testing.T) {
	packet := udpPacket(t, four, strings.Repeat("x", 100))
	for _, c := range []struct {
		apart time.Duration
		whole bool
	}{{30 * time.Second, true}, {30*time.Second + 1, false}, {-30 * time.Second, true}, {-30*time.Second - 1, false}} {
		d := NewDecoder(DecodeOptions{})
		var p Packet
		feed(t, d, 1, time.Hour, fragmentOf(packet, 5, 0, 64, true), 1<<20, &p)
		feed(t, d, 2, time.Hour+c.apart, fragmentOf(packet, 5, 64, 108, false), 1<<20, &p)
		if whole := p.Transport == UDP; whole != c.whole {
			t.Errorf("%v apart: whole is %v", c.apart, whole)
		}
		if st := d.FragmentStats(); (st.Expired == 0) != c.whole {
			t.Errorf("%v apart: %+v", c.apart, st)
		}
	}
}

// TestFragmentsApart: datagrams with one identification do not mix if their
// protocol, address or file differs.
func TestFragmentsApart(t *testing.T) {
	packet := udpPacket(t, four, strings.Repeat("x", 100))
	first := fragmentOf(packet, 5, 0, 64, true)
	for name, second := range map[string][]byte{
		"protocol": with(fragmentOf(packet, 5, 64, 108, false), 9, 6),
		"address":  with(fragmentOf(packet, 5, 64, 108, false), 15, 99),
		"id":       fragmentOf(packet, 6, 64, 108, false),
	} {
		d := NewDecoder(DecodeOptions{})
		var p Packet
		feed(t, d, 1, 0, first, 1<<20, &p)
		feed(t, d, 2, 0, second, 1<<20, &p)
		if p.Transport != Fragment || d.FragmentStats().Held != 2 {
			t.Errorf("fragments of another %s were joined: %+v", name, p)
		}
	}
	d := NewDecoder(DecodeOptions{})
	var p Packet
	feed(t, d, uint64(machine.MakeRef(0, 1)), 0, first, 1<<20, &p)
	feed(t, d, uint64(machine.MakeRef(1, 1)), 0, fragmentOf(packet, 5, 64, 108, false), 1<<20, &p)
	if p.Transport != Fragment {
		t.Errorf("fragments of two files were joined: %+v", p)
	}
}

func TestReassemblyAllocatesNothing(t *testing.T) {
	packet := udpPacket(t, four, strings.Repeat("x", 3000))
	fragments := [][]byte{
		fragmentOf(packet, 5, 0, 1480, true), fragmentOf(packet, 5, 1480, 2960, true),
		fragmentOf(packet, 5, 2960, 3008, false),
	}
	d := NewDecoder(DecodeOptions{})
	var f Frame
	var p Packet
	at := machine.Instant(0)
	if n := testing.AllocsPerRun(1000, func() {
		for i, data := range fragments {
			at += 1e6
			f = Frame{Ref: machine.Ref(i + 1), At: at, LinkType: LinkRaw, Length: len(data), Data: data}
			d.Decode(&f, &p)
		}
		if p.Transport != UDP {
			t.Fatal("not whole")
		}
	}); n > 0 {
		t.Errorf("%v allocations a datagram", n)
	}
}

package hostile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// forger makes packets for worst-case cost, as Ethernet frames. No two flows of
// its have a byte of addresses in common with real ones: it forges 198.18.0.0/15
// and more.
type forger struct {
	rng   *rand.Rand
	frame []byte
	load  [1400]byte
	n     uint32
}

// forgeries by name; each gives the nth packet of its kind.
var forgeries = []struct {
	name string
	make func(*forger, uint32) []byte
}{
	{"spoofed", (*forger).spoofed},
	{"spoofed game", (*forger).spoofedGame},
	{"answered", (*forger).answered},
	{"tags", (*forger).tags},
	{"fragments", (*forger).fragments},
	{"sequence jumps", (*forger).jumps},
	{"long strings", (*forger).strings},
	{"segments out of order", (*forger).segments},
	{"many streams", (*forger).streams},
}

func (f *forger) ethernet(kind uint16, tags ...uint16) {
	f.frame = append(f.frame[:0], 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1)
	for _, t := range tags {
		f.frame = binary.BigEndian.AppendUint16(f.frame, 0x8100)
		f.frame = binary.BigEndian.AppendUint16(f.frame, t)
	}
	f.frame = binary.BigEndian.AppendUint16(f.frame, kind)
}

func host(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18 | byte(n>>16&1), byte(n >> 8), byte(n)})
}

func (f *forger) udp(src, dst netip.AddrPort, payload []byte) []byte {
	var err error
	if f.frame, err = capture.AppendUDP(f.frame, capture.Envelope{Src: src, Dst: dst, ID: uint16(f.rng.Uint32())}, payload); err != nil {
		panic(err)
	}
	return f.frame
}

var victim = netip.MustParseAddrPort("203.0.113.9:7777")

// forged gives the source of the nth flow of a kind: 2^17 addresses, then the ports.
func forged(n uint32) netip.AddrPort { return netip.AddrPortFrom(host(n), uint16(1024+n>>17)) }

func (f *forger) noise(n int) []byte {
	b := f.load[:n]
	for i := 0; i+4 <= n; i += 4 {
		binary.LittleEndian.PutUint32(b[i:], f.rng.Uint32())
	}
	return b
}

// spoofed is a flow of its own each time: one datagram of noise.
func (f *forger) spoofed(n uint32) []byte {
	f.ethernet(0x0800)
	return f.udp(forged(n), victim, f.noise(40+int(n%60)))
}

// spoofedGame is spoofed with the headers of each protocol, five datagrams a flow.
func (f *forger) spoofedGame(n uint32) []byte {
	f.ethernet(0x0800)
	flow, at := n/5, uint16(n%5)
	b := f.noise(60)
	switch flow % 3 {
	case 0:
		b[0], b[1] = 0, 0
		binary.LittleEndian.PutUint16(b[1:], at)
		binary.LittleEndian.PutUint16(b[3:], 0xffff)
		binary.LittleEndian.PutUint32(b[5:], 0)
	case 1:
		b[0] = 0x53
		b[1] = 0
		binary.BigEndian.PutUint16(b[2:], at)
	default:
		b[0] = byte(at)
	}
	return f.udp(netip.AddrPortFrom(host(flow), uint16(20000+flow>>17)), victim, b)
}

// answered is spoofed with an answer to each.
func (f *forger) answered(n uint32) []byte {
	f.ethernet(0x0800)
	a := netip.AddrPortFrom(host(n/2), uint16(40000+n>>18))
	if n%2 == 0 {
		return f.udp(a, victim, f.noise(50))
	}
	return f.udp(victim, a, f.noise(50))
}

// tags nests VLAN tags as deep as a frame has room.
func (f *forger) tags(n uint32) []byte {
	var tags [300]uint16
	f.ethernet(0x0800, tags[:n%300]...)
	return f.udp(forged(n|1<<31), victim, f.noise(40))
}

// fragments begins a datagram that never ends, or goes on with one that never began.
func (f *forger) fragments(n uint32) []byte {
	f.ethernet(0x0800)
	at := len(f.frame)
	b := f.udp(netip.AddrPortFrom(host(n), 1), victim, f.noise(1000))
	offset := uint16(n % 8 * 128)
	binary.BigEndian.PutUint16(b[at+6:], 0x2000|offset)
	binary.BigEndian.PutUint16(b[at+4:], uint16(n/8))
	return b
}

// jumps is one flow whose sequence numbers jump half their range each time.
func (f *forger) jumps(n uint32) []byte {
	f.ethernet(0x0800)
	b := f.noise(60)
	b[0] = 0
	binary.LittleEndian.PutUint16(b[1:], uint16(n*0x7fff))
	binary.LittleEndian.PutUint16(b[3:], uint16(n*0x4001))
	binary.LittleEndian.PutUint32(b[5:], f.rng.Uint32())
	x, y := netip.MustParseAddrPort("198.51.100.7:50000"), victim
	if n%2 > 0 {
		x, y = y, x
	}
	return f.udp(x, y, b)
}

// strings is Riptide's: messages whose VarLong has no end, whose string claims
// 64 kB, whose arrays claim more bits than there are.
func (f *forger) strings(n uint32) []byte {
	f.ethernet(0x0800)
	b := f.noise(64)
	b[0] = byte(n % 3)
	for i := 1; i < len(b); i++ {
		b[i] = 0xff
	}
	x, y := netip.MustParseAddrPort("198.51.100.8:50000"), victim
	if n%2 > 0 {
		x, y = y, x
	}
	return f.udp(x, y, b)
}

func (f *forger) tcp(src, dst netip.AddrPort, seq uint32, flags uint8, payload []byte) []byte {
	var err error
	if f.frame, err = capture.AppendTCP(f.frame, capture.Envelope{Src: src, Dst: dst, ID: uint16(f.rng.Uint32())}, seq, 1, flags, 65535, payload); err != nil {
		panic(err)
	}
	return f.frame
}

// segments is one stream of which the first byte never comes.
func (f *forger) segments(n uint32) []byte {
	f.ethernet(0x0800)
	if n == 0 {
		return f.tcp(netip.MustParseAddrPort("198.51.100.9:50000"), victim, 0, capture.FlagSYN, nil)
	}
	return f.tcp(netip.MustParseAddrPort("198.51.100.9:50000"), victim, 2+n*1201, capture.FlagACK, f.noise(1200))
}

// streams is many of them, in turn.
func (f *forger) streams(n uint32) []byte {
	f.ethernet(0x0800)
	const many = 1 << 15
	src := netip.AddrPortFrom(host(n%many), 60000)
	if n < many {
		return f.tcp(src, victim, 0, capture.FlagSYN, nil)
	}
	return f.tcp(src, victim, 2+(n/many)*1201, capture.FlagACK, f.noise(1200))
}

// next makes the next packet, of one kind in turn, or of one alone.
func (f *forger) next(kind int) []byte {
	n := f.n
	f.n++
	if kind >= 0 {
		return forgeries[kind].make(f, n)
	}
	k := len(forgeries)
	return forgeries[int(n)%k].make(f, n/uint32(k))
}

// said is what a session says of a real flow.
type said struct {
	events, findings []string
	summary          string
}

func registry() *dissect.Registry {
	return dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
}

// genuine reads captures of real flows of all protocols.
func genuine(t testing.TB) (frames []capture.Frame) {
	srdpFile := filepath.Join(t.TempDir(), "srdp.pcap")
	testenv.Output(t, testenv.Ackscope(t), "simulate", "--protocol", "srdp", "--seed", "4", "--clients", "2", "--loss", "15%", "--delay", "20ms", "--jitter", "5ms",
		"--services", "any", "--duration", "6s", "--rate", "20", "--tap", "a", "-w", srdpFile)
	epoch := machine.Instant(1_700_000_000 * int64(time.Second))
	for i, name := range []string{
		testenv.Capture(t, "reliable-ipv6.server.pcapng.gz"), testenv.Capture(t, "u210_loss10.client.pcapng.gz"),
		testenv.Capture(t, "tpy_clean.client.pcap.gz"), testenv.Capture(t, "yojimbo-testmsgs-loss10.client.pcap.gz"), srdpFile,
	} {
		in, err := capture.Open([]string{name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		begun := machine.Instant(0)
		for f := (capture.Frame{}); ; {
			if err := in.Next(&f); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if begun == 0 {
				begun = f.At
			}
			c := f
			c.Data, c.Ref, c.At = append([]byte(nil), f.Data...), machine.MakeRef(i, f.Ref.Frame()), epoch+f.At-begun
			frames = append(frames, c)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortStableFunc(frames, func(a, b capture.Frame) int { return cmp.Compare(a.At, b.At) })
	return frames
}

// run analyses frames, with so many forged ones of a kind before each, and gives
// what is said of the real flows, how much of the heap the session took at its
// end, and how long a forged packet took on average.
func run(t testing.TB, frames []capture.Frame, kind, each int, limits analyze.Limits) (out map[string]*said, s *analyze.Session, heap int64, took time.Duration) {
	out = map[string]*said{}
	of := func(f *analyze.Flow) *said {
		if f.B == victim || f.A == victim {
			return nil
		}
		k := fmt.Sprint(f.A, f.B, f.Transport, f.Session)
		if out[k] == nil {
			out[k] = &said{}
		}
		return out[k]
	}
	before := heapNow()
	s = analyze.NewSession(analyze.Options{Registry: registry(), Limits: limits, Sink: func(r *analyze.Record) {
		if r.Flow == nil || len(r.Events) == 0 {
			return
		}
		if x := of(r.Flow); x != nil {
			for _, e := range r.Events {
				x.events = append(x.events, fmt.Sprint(e))
			}
		}
	}})
	d := capture.NewDecoder(capture.DecodeOptions{})
	forger := &forger{rng: rand.New(rand.NewPCG(1, 2))}
	var p capture.Packet
	forgeries := 0
	for i := range frames {
		begun := time.Now()
		for range each {
			forgeries++
			b := forger.next(kind)
			f := capture.Frame{At: frames[i].At, Ref: machine.MakeRef(9, uint64(forgeries)), LinkType: capture.LinkEthernet, Data: b, Length: len(b), Offset: -1}
			d.Decode(&f, &p)
			s.Feed(&f, &p)
		}
		took += time.Since(begun)
		d.Decode(&frames[i], &p)
		s.Feed(&frames[i], &p)
	}
	told := 0
	for _, x := range out {
		told += len(x.events)
	}
	heap = heapNow() - before - int64(told)*160 // what the test itself keeps, about
	runtime.KeepAlive(d)
	s.Finish()
	for _, f := range s.Flows() {
		x := of(f)
		if x == nil {
			continue
		}
		a, _ := f.Summary(machine.A)
		b, _ := f.Summary(machine.B)
		x.summary = fmt.Sprint(f.Protocol != nil, f.Packets, f.Bytes, a, b)
		for _, found := range f.Findings() {
			x.findings = append(x.findings, fmt.Sprint(found.Rule.ID, found.Side, found.Certainty, found.Count, found.Refs, found.Figures))
		}
	}
	return out, s, heap, took / time.Duration(max(1, forgeries))
}

func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// beyondFlows is what the memory of a session may be beyond the state of its
// flows: datagrams that are held, fragments, the flows' own records.
const beyondFlows = 96 << 20

// TestFlood mixes forged packets among those of real flows, many before each:
// memory stays within what is stated, and of the real flows the same is said as
// without, to the last event. With
// ACKSCOPE_FLOOD=1000000 it is a million of each kind.
func TestFlood(t *testing.T) {
	frames := genuine(t)
	alone, _, _, _ := run(t, frames, -1, 0, analyze.LiveLimits)
	if len(alone) < 5 {
		t.Fatalf("%d real flows, expected 5 at least", len(alone))
	}
	for k, x := range alone {
		if len(x.events) < 100 {
			t.Fatalf("%d events of %s, expected more", len(x.events), k)
		}
	}
	small := analyze.Limits{Flows: 1 << 12, Idle: time.Minute, Bytes: 8 << 20}
	try := func(name string, kind, each int, limits analyze.Limits) {
		mixed, s, heap, took := run(t, frames, kind, each, limits)
		t.Logf("%-22s %8d packets, %v each; %7d flows, %6d remembered, state %4d MiB, heap %4d MiB", name, each*len(frames), took, s.Begun(), len(s.Flows()), s.StateBytes()>>20, heap>>20)
		if len(s.Flows()) > limits.Flows {
			t.Errorf("%s: %d flows are remembered, at most %d were asked for", name, len(s.Flows()), limits.Flows)
		}
		if heap > int64(limits.Bytes+beyondFlows) {
			t.Errorf("%s: the heap is %d MiB, expected at most %d for the flows and %d beside them", name, heap>>20, limits.Bytes>>20, beyondFlows>>20)
		}
		for k, x := range alone {
			y := mixed[k]
			if y == nil {
				t.Errorf("%s: nothing is said of %s", name, k)
				continue
			}
			if x.summary != y.summary || !slices.Equal(x.findings, y.findings) || !slices.Equal(x.events, y.events) {
				t.Errorf("%s: of %s %d events are told, %d without the flood; findings %v, without %v; %s, without %s", name, k, len(y.events), len(x.events), y.findings, x.findings, y.summary, x.summary)
			}
		}
	}
	try("all", -1, 12, analyze.LiveLimits)
	try("all, little room", -1, 12, small)
	flood, err := strconv.Atoi(os.Getenv("ACKSCOPE_FLOOD"))
	if err != nil {
		return
	}
	try("all", -1, flood/len(frames)+1, analyze.LiveLimits)
	for kind := range forgeries {
		try(forgeries[kind].name, kind, flood/len(frames)+1, analyze.LiveLimits)
	}
}

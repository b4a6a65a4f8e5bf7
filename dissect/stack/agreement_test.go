package stack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
)

// reasons are all that may keep the two decoders of frames apart, with what
// each does then.
var reasons = []string{
	"tunnel: only gopacket looks into it",
	"AH in IPv4: only gopacket goes on behind it",
	"depth: gopacket's layers end at 16, of which tags and extension headers are a part",
	"802.3 length: gopacket cuts the payload there; capture.Decoder, where the IP packet ends",
	"PPP: gopacket also reads the address and the short form of the protocol",
	"fragment header in a joined packet: capture.Decoder refuses a second one",
}

// difference says in what the decoders of a frame differ: "" for nothing, one
// of reasons, or what contradicts.
func difference(f *capture.Frame, p *capture.Packet, s *Stack) string {
	if p.Joined != nil {
		s = DecodeIP(p.Joined, p.JoinedAs, Chosen{})
	}
	at := slices.IndexFunc(s.Layers, func(l Layer) bool {
		t := l.LayerType()
		return t == layers.LayerTypeUDP || t == layers.LayerTypeTCP
	})
	reason := excuse(f, s, at)
	switch {
	case p.Quote != nil && at < 0:
		return orElse(reason, quoteDifference(p.Quote, s))
	case at < 0 && (p.Transport == capture.NoTransport || p.Transport == capture.Fragment || p.Problem != nil):
		return ""
	case at < 0:
		return orElse(reason, fmt.Sprintf("gopacket finds no transport (%v), capture.Decoder %v → %v",
			s.Problem, p.Src, p.Dst))
	case p.Transport != capture.UDP && p.Transport != capture.TCP && p.Problem != nil && s.Problem != nil:
		return "" // both refuse the header
	case p.Transport != capture.UDP && p.Transport != capture.TCP:
		return orElse(reason, fmt.Sprintf("gopacket finds %v, capture.Decoder none (%v, %v)",
			s.Layers[at].LayerType(), p.Transport, p.Problem))
	}
	if got := offsets(s); p.Joined == nil && !samePlaces(p.Layers, got) && p.Problem == nil {
		return orElse(reason, fmt.Sprintf("headers at %v, capture.Decoder has %v", got, p.Layers))
	}
	var src, dst uint16
	switch t := s.Layers[at].Layer.(type) {
	case *layers.UDP:
		src, dst = uint16(t.SrcPort), uint16(t.DstPort)
	case *layers.TCP:
		src, dst = uint16(t.SrcPort), uint16(t.DstPort)
	}
	if src != p.Src.Port() || dst != p.Dst.Port() {
		return orElse(reason, fmt.Sprintf("gopacket reads ports %d → %d, capture.Decoder %v → %v", src, dst, p.Src, p.Dst))
	}
	if n := s.Packet.NetworkLayer(); n != nil && p.Joined == nil {
		from, _ := netip.AddrFromSlice(n.NetworkFlow().Src().Raw())
		to, _ := netip.AddrFromSlice(n.NetworkFlow().Dst().Raw())
		if from.Unmap() != p.Src.Addr() || to.Unmap() != p.Dst.Addr() {
			return orElse(reason, fmt.Sprintf("gopacket reads %v → %v, capture.Decoder %v → %v", from, to, p.Src, p.Dst))
		}
	}
	if p.Quote != nil {
		return fmt.Sprintf("gopacket finds %v, capture.Decoder the quote %+v", s.Layers[at].LayerType(), p.Quote)
	}
	if got := s.Layers[at].LayerPayload(); !bytes.Equal(got, p.Payload) && p.Payload != nil {
		return orElse(reason, fmt.Sprintf("payload % x, capture.Decoder % x (%v, %v)", got, p.Payload, s.Problem, p.Problem))
	}
	return ""
}

// quoteDifference says in what the quote of an ICMP error differs from the layers that gopacket
// reads of it.
func quoteDifference(q *capture.Quote, s *Stack) string {
	at := slices.IndexFunc(s.Layers, func(l Layer) bool { return l.Quoted != nil })
	if at < 0 {
		return fmt.Sprintf("gopacket finds no quote, capture.Decoder %+v", q)
	}
	var src, dst uint16
	known := false
	for _, l := range s.Layers[at].Quoted.Layers {
		switch t := l.Layer.(type) {
		case *layers.IPv4:
			if from, _ := netip.AddrFromSlice(t.SrcIP.To4()); from != q.Src.Addr() || t.Length > 0 && int(t.Length) != q.Size {
				return fmt.Sprintf("gopacket reads a quote of %v with %d bytes, capture.Decoder %+v", from, t.Length, q)
			}
		case *layers.IPv6:
			if from, _ := netip.AddrFromSlice(t.SrcIP); from.Unmap() != q.Src.Addr() {
				return fmt.Sprintf("gopacket reads a quote of %v, capture.Decoder %+v", from, q)
			}
		case *layers.UDP:
			if len(t.Contents) < 8 {
				break // gopacket refuses the header
			}
			src, dst, known = uint16(t.SrcPort), uint16(t.DstPort), true
			if q.Length >= 0 && t.Length > 0 && int(t.Length) != q.Length+8 { // 0: gopacket refuses the header
				return fmt.Sprintf("gopacket reads %d bytes of UDP, capture.Decoder %+v", t.Length, q)
			}
		case *layers.TCP:
			if len(t.Contents) < 20 {
				break // gopacket refuses the header: most errors quote eight bytes of it
			}
			src, dst, known = uint16(t.SrcPort), uint16(t.DstPort), true
		}
	}
	if known && (src != q.Src.Port() || dst != q.Dst.Port()) {
		return fmt.Sprintf("gopacket reads ports %d → %d, capture.Decoder %+v", src, dst, q)
	}
	return ""
}

func orElse(reason, text string) string {
	if reason != "" {
		return reason
	}
	return text
}

// excuse returns the reason that a frame gives the decoders to differ, if any.
func excuse(f *capture.Frame, s *Stack, transport int) string {
	networks, ah := 0, -1
	for i := range s.Layers {
		switch l := s.Layers[i].Layer.(type) {
		case *layers.IPv4, *layers.IPv6:
			if networks++; networks == 2 && (transport < 0 || i < transport) {
				return reasons[0]
			}
		case *layers.GRE, *layers.MPLS, *layers.EtherIP:
			return reasons[0]
		case *layers.IPSecAH:
			ah = i
		case *layers.Ethernet:
			if l.EthernetType == layers.EthernetTypeLLC {
				return reasons[3]
			}
		case *layers.PPP:
			if l.HasPPTPHeader || len(l.Contents) != 2 {
				return reasons[4]
			}
		case *layers.IPv6Fragment:
			if f == nil {
				return reasons[5]
			}
		}
	}
	if ah > 0 {
		if _, ok := s.Layers[ah-1].Layer.(*layers.IPv4); ok {
			return reasons[1]
		}
	}
	if errors.Is(s.Problem, errDepth) {
		return reasons[2]
	}
	return ""
}

// offsets returns where the headers of a stack are, down to its transport.
func offsets(s *Stack) (at []int) {
	for i := range s.Layers {
		at = append(at, s.Layers[i].Offset)
		switch s.Layers[i].LayerType() {
		case layers.LayerTypeUDP, layers.LayerTypeTCP:
			return at
		}
	}
	return at
}

// samePlaces reports whether each header of capture.Decoder is at a place where
// gopacket has one. LLC with SNAP, and PPPoE with PPP, are one header there.
func samePlaces(list []capture.Layer, at []int) bool {
	for _, l := range list {
		if !slices.Contains(at, l.Offset) {
			return false
		}
	}
	return true
}

// tally counts the reasons, and fails for what is none.
type tally struct {
	counts   map[string]int
	compared int
}

func (c *tally) frame(t *testing.T, d *capture.Decoder, f *capture.Frame) {
	t.Helper()
	var p capture.Packet
	d.Decode(f, &p)
	s := Decode(f, Chosen{})
	checkStack(t, f, s)
	diff := difference(f, &p, s)
	switch {
	case diff == "":
		if p.Transport == capture.UDP || p.Transport == capture.TCP {
			c.compared++
		}
	case slices.Contains(reasons, diff):
		c.counts[diff]++
	default:
		t.Fatalf("frame %d, link type %d, % x:\n%s", f.Ref.Frame(), f.LinkType, f.Data, diff)
	}
}

// checkStack checks what holds for all frames: bounded layers in their place,
// and fields within them.
func checkStack(t *testing.T, f *capture.Frame, s *Stack) {
	t.Helper()
	if len(s.Layers) > MaxDepth+2 {
		t.Fatalf("%d layers of % x", len(s.Layers), f.Data)
	}
	for i := range s.Layers {
		l := &s.Layers[i]
		if l.Offset < 0 || l.Length < 0 || l.Offset+l.Length > len(f.Data) {
			t.Fatalf("layer %v at %d+%d of %d bytes: % x", l.LayerType(), l.Offset, l.Length, len(f.Data), f.Data)
		}
		list := s.Fields(i)
		if len(list) > maxFields {
			t.Fatalf("%d fields", len(list))
		}
		for j := range list {
			x := &list[j]
			if x.Bit < 0 || x.Bits < 0 || x.Bit+x.Bits > 8*len(f.Data) {
				t.Fatalf("%s at bit %d+%d of %d bytes", x.Name, x.Bit, x.Bits, len(f.Data))
			}
		}
		if l.Quoted != nil {
			checkStack(t, f, l.Quoted)
		}
	}
}

// TestDecodersAgree holds gopacket's decoding of frames against capture.Decoder
// over the frames of all captures: the first of each, and all of them in the
// grid.
func TestDecodersAgree(t *testing.T) {
	most := uint64(40)
	if testenv.Whole() {
		most = 1 << 40
	}
	c := tally{counts: map[string]int{}}
	paths, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "*.pcap*"))
	if err != nil || len(paths) < 200 {
		t.Fatalf("%d captures: %v", len(paths), err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, ".replay") {
			continue
		}
		in, err := capture.Open([]string{path}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := capture.NewDecoder(capture.DecodeOptions{})
		for f := (capture.Frame{}); f.Ref.Frame() < most; {
			if err := in.Next(&f); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			c.frame(t, d, &f)
		}
		in.Close()
	}
	t.Logf("%d packets are the same; %v", c.compared, c.counts)
	if c.compared < 5000 {
		t.Errorf("only %d packets were compared", c.compared)
	}
	for reason, n := range c.counts {
		t.Errorf("%d frames differ in captures of real traffic: %s", n, reason)
	}
}

// seeds returns frames of many shapes, as seeds for mutation.
func seeds(t testing.TB) (list []capture.Frame) {
	t.Helper()
	for _, name := range []string{
		"*linktype-*", "*ipfrag.client*", "reliable-loss10.client*", "*ipv6.client*",
		"*u210_plain_any*", "t210_clean.client*",
	} {
		paths, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", name))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no capture (%v)", name, err)
		}
		for _, path := range paths {
			if strings.Contains(path, ".log") || strings.HasSuffix(path, ".replay") || !strings.Contains(path, ".pcap") {
				continue
			}
			in, err := capture.Open([]string{path}, capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var f capture.Frame
			for range 6 {
				if in.Next(&f) == nil {
					f.Data = bytes.Clone(f.Data)
					list = append(list, f)
				}
			}
			in.Close()
		}
	}
	for _, b := range samples(t) {
		list = append(list, capture.Frame{Ref: 1, LinkType: capture.LinkEthernet, Data: b.bytes, Length: len(b.bytes)})
	}
	return list
}

// TestDecodersAgreeOnNoise is TestDecodersAgree over mutated frames.
func TestDecodersAgreeOnNoise(t *testing.T) {
	rounds := testenv.Rounds(30_000, 300_000, 2_000_000)
	r := rand.New(rand.NewPCG(20, 1))
	list := seeds(t)
	c := tally{counts: map[string]int{}}
	for range rounds {
		f := list[r.IntN(len(list))]
		f.Data = mutate(r, f.Data)
		f.Length = len(f.Data)
		c.frame(t, capture.NewDecoder(capture.DecodeOptions{}), &f)
	}
	t.Logf("%d packets are the same; %v", c.compared, c.counts)
	if c.compared < rounds/5 {
		t.Errorf("only %d packets were compared", c.compared)
	}
}

func mutate(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range r.IntN(5) {
		b[r.IntN(min(len(b), 90))] = byte(r.Uint32() >> r.IntN(24))
	}
	if r.IntN(4) == 0 {
		b = b[:1+r.IntN(len(b))]
	}
	return b
}

// FuzzDecode decodes anything, of any link type.
func FuzzDecode(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(uint16(s.LinkType), s.Data)
	}
	f.Fuzz(func(t *testing.T, link uint16, b []byte) {
		frame := capture.Frame{Ref: 1, LinkType: uint32(link), Data: b, Length: len(b)}
		c := tally{counts: map[string]int{}}
		c.frame(t, capture.NewDecoder(capture.DecodeOptions{}), &frame)
	})
}

// TestNothingBeyondTheFrame: a header that says that it is longer than the frame is a problem. The
// bytes that follow the frame in memory are not shown.
func TestNothingBeyondTheFrame(t *testing.T) {
	whole := append([]byte("\x00\x00\x00\x02E00000@\x000\x1b00000000000!00"), make([]byte, 200)...)
	const length = 28
	f := capture.Frame{LinkType: 108, Data: whole[:length], Length: length} // BSD's loopback, IPv4, RUDP
	s := Decode(&f, Chosen{})
	for _, l := range s.Layers {
		if l.Offset+l.Length > length {
			t.Errorf("layer %v at %d+%d of %d bytes", l.LayerType(), l.Offset, l.Length, length)
		}
	}
	var e *LayerError
	if !errors.As(s.Problem, &e) || e.Layer != "RUDP" || e.Offset != 24 {
		t.Errorf("problem %+v", s.Problem)
	}
}

// TestNestedTags: a frame of tags alone costs sixteen layers, not its length.
func TestNestedTags(t *testing.T) {
	b := bytes.Repeat([]byte{0x81, 0, 0, 5}, 10000)
	f := capture.Frame{LinkType: capture.LinkEthernet, Data: append(make([]byte, 12), b...)}
	s := Decode(&f, Chosen{})
	if len(s.Layers) != MaxDepth || !errors.Is(s.Problem, errDepth) {
		t.Errorf("%d layers, %v", len(s.Layers), s.Problem)
	}
	var e *LayerError
	if !errors.As(s.Problem, &e) || e.Layer != "Dot1Q" || e.Offset != 14+4*(MaxDepth-1) {
		t.Errorf("problem %+v", e)
	}
}

// TestNoPortIsRegistered: another user of gopacket in the process decodes as
// before.
func TestNoPortIsRegistered(t *testing.T) {
	for port := range 1 << 16 {
		if n := layers.UDPPort(port).LayerType(); n >= 1300 && n < gopacket.LayerType(1310) {
			t.Errorf("UDP port %d decodes as %v", port, n)
		}
	}
}

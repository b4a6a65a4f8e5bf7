package capture

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// seedFrames returns frames of every shape, as seeds for mutation.
func seedFrames(t testing.TB) (frames []Frame) {
	v4, v6 := udpPacket(t, four, "some game payload"), udpPacket(t, six, "some game payload")
	for _, b := range [][]byte{
		join(macs, etherIPv4, v4), join(macs, etherIPv6, v6), join(macs, etherVLAN, 5, etherIPv4, v4),
		join(macs, etherQinQ, 5, etherVLAN, 6, etherIPv6, v6),
		join(macs, etherIPv6, extended(v6, 0, make6(43, 0, 1), make6(17, 0, 0))),
	} {
		frames = append(frames, Frame{LinkType: LinkEthernet, Data: b})
	}
	tcp, err := AppendTCP(nil, six, 1, 2, FlagACK, 3, []byte("stream"))
	if err != nil {
		t.Fatal(err)
	}
	frames = append(frames, Frame{LinkType: LinkRaw, Data: v4},
		Frame{LinkType: LinkNull, Data: join("\x1e\x00\x00\x00", tcp)})
	for _, path := range captures(t, "linktype-", "ipfrag.client", "reliable-loss10", "ipv6.client", "u210_plain_any") {
		in := mustOpen(t, Options{}, path)
		var f Frame
		for range 6 {
			if in.Next(&f) == nil {
				f.Data = bytes.Clone(f.Data)
				frames = append(frames, f)
			}
		}
	}
	for _, e := range icmpShapes(t) {
		frames = append(frames, Frame{LinkType: LinkRaw, Data: e.data})
	}
	for i := range frames {
		frames[i].Ref, frames[i].Length = 1, len(frames[i].Data)
	}
	return frames
}

// TestDecodeAsGopacket compares with gopacket's layers, over mutated frames of
// the kinds that gopacket reads well.
func TestDecodeAsGopacket(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seeds := seedFrames(t)
	first := map[uint32]gopacket.Decoder{
		LinkEthernet: layers.LayerTypeEthernet, LinkRaw: layers.LinkTypeRaw,
		LinkNull: layers.LinkTypeNull,
	}
	datagrams := 0
	for range 60000 {
		f := seeds[r.IntN(len(seeds))]
		link, ok := first[f.LinkType]
		if !ok {
			continue
		}
		f.Data = bytes.Clone(f.Data)
		for range r.IntN(4) {
			f.Data[r.IntN(min(len(f.Data), 70))] = byte(r.Uint32() >> r.IntN(24))
		}
		if r.IntN(4) == 0 {
			f.Data = f.Data[:1+r.IntN(len(f.Data)-1)]
		}
		var p Packet
		NewDecoder(DecodeOptions{}).Decode(&f, &p)
		checkInvariants(t, &f, &p)
		if compareGopacket(t, gopacket.NewPacket(f.Data, link, gopacket.NoCopy), &f, &p) {
			datagrams++
		}
		if t.Failed() {
			t.Fatalf("frame % x", f.Data)
		}
	}
	if datagrams < 10000 {
		t.Errorf("only %d datagrams were compared", datagrams)
	}
}

// compareGopacket compares p with gopacket's result where that is sound. It
// reports whether it compared a UDP datagram.
func compareGopacket(t *testing.T, g gopacket.Packet, f *Frame, p *Packet) bool {
	for _, l := range g.Layers() {
		switch l := l.(type) {
		case *layers.Ethernet:
			if l.EthernetType == layers.EthernetTypeLLC || l.Length > 0 {
				return false // gopacket cuts the payload by a length that real frames pad
			}
		case *layers.Dot1Q, *layers.IPv6HopByHop, *layers.IPv6Routing, *layers.IPv6Destination, *layers.Loopback:
		case *layers.IPv4:
			if l.Version != 4 || l.Length == 0 {
				return false
			}
		case *layers.IPv6:
			if l.Version != 6 || l.Length == 0 || l.SrcIP.To4() != nil || l.DstIP.To4() != nil {
				return false
			}
			if l.HopByHop != nil && int(l.Length) < l.HopByHop.ActualLength {
				return false // gopacket reads that header beyond the packet's end
			}
		case *layers.UDP:
			if len(l.Contents) < 8 || l.Length > 0 && l.Length < 8 {
				return false // gopacket refused the header, but still shows it
			}
			src, _ := netip.AddrFromSlice(g.NetworkLayer().NetworkFlow().Src().Raw())
			dst, _ := netip.AddrFromSlice(g.NetworkLayer().NetworkFlow().Dst().Raw())
			wantSrc, wantDst := netip.AddrPortFrom(src, uint16(l.SrcPort)), netip.AddrPortFrom(dst, uint16(l.DstPort))
			if p.Transport != UDP || p.Src != wantSrc || p.Dst != wantDst || !bytes.Equal(p.Payload, l.Payload) {
				t.Errorf("gopacket reads UDP %s to %s, % x; here %s %v", wantSrc, wantDst, l.Payload, describe(p), p.Problem)
			}
			return true
		default:
			return false
		}
	}
	return false
}

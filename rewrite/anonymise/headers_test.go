package anonymise_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/rewrite/anonymise"
)

// made returns a capture of frames with one link type.
func made(link uint32, frames ...[]byte) *written {
	w := &written{}
	for i, b := range frames {
		w.frames = append(w.frames, capture.Frame{
			Ref: machine.MakeRef(0, uint64(i)+1), At: machine.Instant(i) * 1e6, LinkType: link, Length: len(b),
			Data: b,
		})
	}
	return w
}

// datagram6 returns a UDP datagram over IPv6 after extension headers. next is
// the kind of the first of these.
func datagram6(next byte, extensions []byte) []byte {
	const udpLength = 8 + 12
	b := append([]byte{0x60, 1, 2, 3}, 0, byte(len(extensions)+udpLength), next, 64)
	b = append(b, address(1)...)
	b = append(b, address(2)...)
	b = append(b, extensions...)
	return append(append(b, 0, 7, 0, 8, 0, udpLength, 0, 0), "a text of 12"...)
}

func address(last byte) []byte { return []byte{0x20, 1, 0xd, 0xb8, 15: last} }

// routed returns one datagram for each kind of routing header that leads to
// address 9, and the offset of that address.
func routed() (frames [][]byte, final []int) {
	const routing, head, extension = 43, 40, 8
	source := slices.Concat([]byte{17, 4, 0, 2, 0, 0, 0, 0}, address(8), address(9))
	home := slices.Concat([]byte{17, 2, 2, 1, 0, 0, 0, 0}, address(9))
	segments := slices.Concat([]byte{17, 4, 4, 1, 1, 0, 0, 0}, address(9), address(8))
	return [][]byte{datagram6(routing, source), datagram6(routing, home), datagram6(routing, segments)},
		[]int{head + extension + 16, head + extension, head + extension}
}

// TestRoutingHeaders: addresses of routing headers are replaced like those of
// the IP header, and the checksum uses the last destination (RFC 8200,
// "Upper-Layer Checksums").
func TestRoutingHeaders(t *testing.T) {
	frames, final := routed()
	direct := datagram6(17, nil) // has the last destination in its IP header
	copy(direct[24:], address(9))
	in := made(capture.LinkRaw, append(frames, direct)...)
	w, report := run(t, in, anonymise.Options{})
	names := map[string]string{}
	for _, x := range report.Addresses {
		names[x.From] = x.To
	}
	if len(names) != 4 {
		t.Errorf("%d addresses replaced, expected 4: %v", len(names), names)
	}
	want := netip.MustParseAddr(names["2001:db8::9"])
	sum := func(b []byte) uint16 { return binary.BigEndian.Uint16(b[len(b)-14:]) }
	for i := range frames {
		b := w.frames[i].Data
		if bytes.Contains(b, []byte{0x20, 1, 0xd, 0xb8}) {
			t.Errorf("frame %d has an address of the original: % x", i+1, b)
		}
		if got := netip.AddrFrom16([16]byte(b[final[i]:])); got != want {
			t.Errorf("frame %d: the last destination is %v, expected %v", i+1, got, want)
		}
		if sum(b) != sum(w.frames[3].Data) || sum(b) == 0 {
			t.Errorf("frame %d: checksum %#04x, that of the same datagram on the direct way is %#04x", i+1, sum(b),
				sum(w.frames[3].Data))
		}
	}
}

// TestRoutingChecksums: tshark accepts the checksums behind routing headers.
func TestRoutingChecksums(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	frames, _ := routed()
	w, _ := run(t, made(capture.LinkRaw, frames...), anonymise.Options{})
	path := filepath.Join(t.TempDir(), "out.pcapng")
	write(t, path, w)
	out, err := exec.Command(tshark, "-r", path, "-o", "udp.check_checksum:TRUE", "-T", "fields", "-e",
		"udp.checksum.status").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(out)); !slices.Equal(got, []string{"1", "1", "1"}) {
		t.Errorf("tshark says of the checksums %q, expected 1 (good) for each", got)
	}
}

// TestVLAN: a VLAN has the same number in inner and outer tags. 0 and 4095 name
// no VLAN.
func TestVLAN(t *testing.T) {
	frame := func(outer, inner uint16) []byte {
		b := append(bytes.Repeat([]byte{2}, 12), 0x88, 0xa8)
		b = binary.BigEndian.AppendUint16(b, outer)
		b = binary.BigEndian.AppendUint16(append(b, 0x81, 0), inner)
		ip, err := capture.AppendUDP(nil, capture.Envelope{
			Src: netip.MustParseAddrPort("192.0.2.1:1"),
			Dst: netip.MustParseAddrPort("192.0.2.2:2"),
		}, []byte("text"))
		if err != nil {
			t.Fatal(err)
		}
		return append(append(b, 8, 0), ip...)
	}
	const priority = 0xe000
	w, _ := run(t, made(capture.LinkEthernet, frame(700, 800), frame(priority|800, 0), frame(0xfff, 700)),
		anonymise.Options{})
	for i, want := range [][2]uint16{{1, 2}, {priority | 2, 0}, {0xfff, 1}} {
		b := w.frames[i].Data
		if got := [2]uint16{binary.BigEndian.Uint16(b[14:]), binary.BigEndian.Uint16(b[18:])}; got != want {
			t.Errorf("frame %d has tags %x, expected %x", i+1, got, want)
		}
	}
}

// TestForeign: a datagram that the flow's protocol did not send is replaced
// completely, even at the start of the flow and if many are alike. A datagram
// of the flow after a long gap keeps its header.
func TestForeign(t *testing.T) {
	var frames [][]byte
	send := func(back bool, payload []byte) {
		e := capture.Envelope{
			Src: netip.MustParseAddrPort("192.0.2.1:1000"),
			Dst: netip.MustParseAddrPort("192.0.2.2:2000"),
		}
		if back {
			e.Src, e.Dst = e.Dst, e.Src
		}
		ip, err := capture.AppendUDP(nil, e, payload)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, ip)
	}
	foreign := []byte("QZXJKVWY and so on")
	own := map[int]bool{} // frames that keep their header
	turn := func(at int) {
		for _, back := range []bool{false, true} {
			own[len(frames)] = true
			b := binary.LittleEndian.AppendUint16(nil, uint16(at))
			b = binary.LittleEndian.AppendUint16(b, uint16(at-1))
			b = binary.LittleEndian.AppendUint32(b, 0xffffffff)
			send(back, append(b, "what the game says"...))
		}
	}
	send(false, foreign)
	for at := range 200 {
		turn(at)
		if at%10 == 0 {
			send(at%20 == 0, foreign)
		}
	}
	for at := 30000; at < 30100; at++ {
		turn(at)
	}
	w, _ := run(t, made(capture.LinkRaw, frames...), anonymise.Options{})
	const header = 8
	for i, b := range frames {
		was, is := b[28:28+header], w.frames[i].Data[28:28+header]
		if bytes.Equal(was, is) != own[i] {
			t.Fatalf("frame %d: its first bytes % x became % x; of the flow's protocol: %v", i+1, was, is, own[i])
		}
	}
}

// TestKeyOf: a secret has the same key everywhere, and another secret has
// another key.
func TestKeyOf(t *testing.T) {
	key := anonymise.KeyOf([]byte("opensesame"))
	if key != anonymise.KeyOf([]byte("opensesame")) || key == anonymise.KeyOf([]byte("opensesam")) || key == [32]byte{} {
		t.Errorf("key %x", key)
	}
}

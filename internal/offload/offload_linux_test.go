package offload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// keep names a directory into which TestBatchesOfTheKernel writes its captures.
const keep = "ACKSCOPE_KEEP_CAPTURES"

// header is the article's, with a CRC of the datagram.
var header = func() *wire.Profile {
	p, _, err := wire.Builtin(wire.ArticleCRC32)
	if err != nil {
		panic(err)
	}
	id := uint32(0x41434b53)
	p.ProtocolID = &id
	return p
}()

// datagram returns a packet with a number.
func datagram(n, length int) []byte {
	h := wire.Header{Sequence: uint32(n), Ack: uint32(n / 2), AckBits: 1<<32 - 1}
	pk := wire.Packet{Header: h, HasHeader: true, Sequence: h.Sequence}
	payload := make([]byte, length-len(header.Append(nil, &pk, nil)))
	for i := range payload {
		payload[i] = byte(n*31 + i*7)
	}
	return header.Append(nil, &pk, payload)
}

// ip runs the program of that name.
func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command(testenv.Need(t, "ip"), strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v\n%s", args, err, out)
	}
}

// socket returns a UDP socket that is bound to an address.
func socket(t *testing.T, at string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(at)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// send sends a payload, in segments of a size unless that is 0.
func send(t *testing.T, c *net.UDPConn, to string, payload []byte, size int) {
	t.Helper()
	var control []byte
	if size > 0 {
		control = make([]byte, unix.CmsgSpace(2))
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
		h.SetLen(unix.CmsgLen(2))
		binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], uint16(size))
	}
	_, _, err := c.WriteMsgUDP(payload, control, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
	if errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EINVAL) && size > 0 {
		testenv.Skip(t, "the kernel does not segment UDP: "+err.Error())
	}
	if err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatal(err)
	}
}

// recorder captures the UDP and ICMP packets of an interface.
type recorder struct {
	live afpacket.Live
	link uint32
}

func record(t *testing.T, name string) *recorder {
	t.Helper()
	l, err := afpacket.Open(afpacket.Options{Interface: name, Buffer: 8 << 20, Filter: "udp or icmp"})
	if err != nil {
		testenv.Skip(t, "no live capture: "+err.Error())
	}
	t.Cleanup(func() { _ = l.Close() })
	return &recorder{l, l.Interface().LinkType}
}

// stop ends the capture, and writes it to a file.
func (r *recorder) stop(t *testing.T, path string) string {
	t.Helper()
	time.Sleep(100 * time.Millisecond) // what passed reaches the ring at once; ICMP errors follow by a softirq
	r.live.Stop()
	var file bytes.Buffer
	w, err := capture.NewWriter(&file, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.BeginSection(capture.Section{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInterface(r.live.Interface()); err != nil {
		t.Fatal(err)
	}
	var f capture.Frame
	for r.live.Next(&f) == nil {
		f.Interface = 0
		if err := w.WriteFrame(&f); err != nil {
			t.Fatal(err)
		}
	}
	st, err := r.live.Statistics()
	if err != nil || st.OSDropped > 0 {
		t.Fatalf("the capture dropped %d frames, %v", st.OSDropped, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBatchesOfTheKernel: a real socket sends batches with UDP_SEGMENT, over loopback and over
// a pair of interfaces. The card of the pair first takes batches whole, and then none: the
// kernel segments them. The analysis shows the datagrams that were sent, in all of these.
func TestBatchesOfTheKernel(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	dir := os.Getenv(keep)
	if dir == "" {
		dir = t.TempDir()
	}
	ip(t, "addr add 10.9.0.1/24 dev veth0")
	peer, err := net.InterfaceByName("veth1")
	if err != nil {
		t.Fatal(err)
	}
	ip(t, "neigh add 10.9.0.2 lladdr "+peer.HardwareAddr.String()+" dev veth0")
	for _, c := range []struct {
		name, captured, from, to string
		whole                    bool // the capture holds batches
		prepare                  string
	}{
		{"loopback", "lo", "127.0.0.1:5000", "127.0.0.1:6000", true, ""},
		{"card", "veth0", "10.9.0.1:5000", "10.9.0.2:6000", true, ""},
		{"receiver", "veth1", "10.9.0.1:5000", "10.9.0.2:6000", true, ""},
		{"segmented", "veth1", "10.9.0.1:5000", "10.9.0.2:6000", false, "link set dev veth0 gso_max_segs 1"},
	} {
		if c.prepare != "" {
			ip(t, c.prepare)
		}
		r := record(t, c.captured)
		sender := socket(t, c.from)
		var receiver *net.UDPConn
		if c.name == "loopback" {
			receiver = socket(t, c.to)
		}
		var sent, answers [][]byte
		number := 0
		put := func(count, size, rest int) {
			var joined []byte
			for i := range count {
				n := size
				if i == count-1 {
					n = rest
				}
				b := datagram(number, n)
				number++
				sent, joined = append(sent, b), append(joined, b...)
			}
			segment := size
			if count == 1 {
				segment = 0
			}
			send(t, sender, c.to, joined, segment)
			if receiver != nil {
				b := datagram(number, 40)
				answers = append(answers, b)
				send(t, receiver, c.from, b, 0)
			}
		}
		for i := range 40 {
			put(1, 0, 30+i)
		}
		for i := range 30 {
			put(4+i, 400+i%3, 400-i)
			put(1, 0, 50)
			put(3+i%40, 1200, 100+i)
		}
		put(2, 600, 600)
		put(60, 1000, 1000)
		put(60, 1000, 999)
		got := analysed(t, r.stop(t, filepath.Join(dir, "gso-"+c.name+".pcapng")))
		want := sent
		if !slices.EqualFunc(got.from[5000], want, bytes.Equal) {
			at := 0
			for at < len(want) && at < len(got.from[5000]) && bytes.Equal(want[at], got.from[5000][at]) {
				at++
			}
			t.Errorf("%s: %d datagrams, %d were sent; number %d is the first that differs", c.name, len(got.from[5000]),
				len(want), at)
		}
		if !slices.EqualFunc(got.from[6000], answers, bytes.Equal) {
			t.Errorf("%s: %d answers of %d", c.name, len(got.from[6000]), len(answers))
		}
		if c.whole != (got.batched > 0) || c.whole && got.frames*2 > len(sent) {
			t.Errorf("%s: %d of %d datagrams in batches, %d frames", c.name, got.batched, len(sent), got.frames)
		}
		if c.name != "loopback" {
			list := slices.DeleteFunc(got.rules(), func(s string) bool {
				return strings.HasPrefix(s, "offload ") || strings.HasPrefix(s, "bandwidth ") // its mean is of the test's speed
			})
			if len(list) > 0 {
				t.Errorf("%s: findings %q", c.name, list)
			}
		}
		_ = sender.Close()
		if receiver != nil {
			_ = receiver.Close()
		}
	}
}

// TestErrorsOfTheKernel: the kernel's own ICMP errors name the flow and the datagram.
func TestErrorsOfTheKernel(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	r := record(t, "lo")
	client, server := socket(t, "127.0.0.1:5000"), socket(t, "127.0.0.1:6000")
	for i := range 60 {
		send(t, client, "127.0.0.1:6000", datagram(i, 60), 0)
		send(t, server, "127.0.0.1:5000", datagram(i, 60), 0)
	}
	_ = server.Close()
	send(t, client, "127.0.0.1:6000", datagram(60, 60), 0)
	got := analysed(t, r.stop(t, filepath.Join(t.TempDir(), "refused.pcapng")))
	want := `icmp-closed b certain: 1 ICMP error, such as "port unreachable"`
	if list := got.rules(); !slices.Contains(list, want) {
		t.Errorf("findings %q, expected %q", list, want)
	}
	for _, x := range got.session.Flows()[0].Findings() {
		if x.Rule.ID == "icmp-closed" && (x.Refs[0].Frame() != 122 || x.Abouts[0].Frame() != 121) {
			t.Errorf("frame %d about %d, expected 122 about 121", x.Refs[0].Frame(), x.Abouts[0].Frame())
		}
	}
}

package afpacket

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testnet"
)

func start(t *testing.T, o Options) Live {
	t.Helper()
	if o.Buffer == 0 {
		o.Buffer = 2 << 20 // small, because the kernel clears it: a large one takes longer than the test
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// ethernet builds an Ethernet frame with tags around an IP packet with UDP to
// port 7777.
func ethernet(t *testing.T, payload []byte, tags ...byte) []byte {
	t.Helper()
	frame := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}, tags...)
	frame = append(frame, 8, 0)
	frame, err := capture.AppendUDP(frame, capture.Envelope{
		Src: netip.MustParseAddrPort("10.9.0.1:6666"), Dst: netip.MustParseAddrPort("10.9.0.2:7777"),
	}, payload)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// toGame reads frames until n datagrams to port 7777 have come, and calls each
// for them.
func toGame(t *testing.T, l Live, n int, each func(*capture.Frame, *capture.Packet)) {
	t.Helper()
	guard := time.AfterFunc(20*time.Second, l.Stop)
	defer guard.Stop()
	d := capture.NewDecoder(capture.DecodeOptions{})
	var f capture.Frame
	var p capture.Packet
	for n > 0 {
		if err := l.Next(&f); err != nil {
			t.Fatalf("%v, with %d datagrams still to come", err, n)
		}
		if d.Decode(&f, &p); p.Transport == capture.UDP && p.Dst.Port() == 7777 {
			n--
			each(&f, &p)
		}
	}
}

// arrived waits until the kernel has counted n frames.
func arrived(t *testing.T, l Live, n uint64) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		st, err := l.Statistics()
		if err != nil {
			t.Fatal(err)
		}
		if st.FilterAccepted >= n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the kernel counts %+v after 20 s, %d were sent", st, n)
		}
	}
}

func TestTagsComeBack(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	on, all := start(t, Options{Interface: "veth0"}), start(t, Options{Interface: Any})
	out := testnet.Inject(t, "veth1")
	sent := [][]byte{
		ethernet(t, []byte("none")),
		ethernet(t, []byte("one"), 0x81, 0, 0x20, 5),
		ethernet(t, []byte("two"), 0x88, 0xa8, 0, 9, 0x81, 0, 0, 5),
	}
	before := time.Now()
	for _, frame := range sent {
		out.Send(t, frame)
	}
	i := 0
	toGame(t, on, len(sent), func(f *capture.Frame, p *capture.Packet) {
		if !bytes.Equal(f.Data, sent[i]) || f.Length != len(sent[i]) {
			t.Errorf("frame %d, length %d:\n% x\nsent:\n% x", i, f.Length, f.Data, sent[i])
		}
		if apart := f.At.Time().Sub(before); apart < -time.Second || apart > 30*time.Second {
			t.Errorf("frame %d is stamped %v after it was sent", i, apart)
		}
		if f.LinkType != capture.LinkEthernet || f.Offset != -1 || f.Ref.Frame() == 0 {
			t.Errorf("frame %d: %+v", i, f)
		}
		i++
	})
	// Each frame passes `any` twice: out of veth1 and in at veth0. Some kernels
	// drop the inner of two tags on the way out.
	tags := 0
	duplicate := map[string]bool{}
	toGame(t, all, 2*len(sent), func(f *capture.Frame, p *capture.Packet) {
		if f.LinkType != capture.LinkSLL2 || f.Length != len(f.Data) {
			t.Errorf("frame on any: %+v", f)
		}
		if p.Duplicate {
			duplicate[string(p.Payload)] = true
		}
		for _, l := range p.Layers {
			if l.Kind == capture.LayerVLAN && p.Direction == capture.Inbound {
				tags++
			}
		}
	})
	if tags != 3 || len(duplicate) != len(sent) {
		t.Errorf("on any: %d VLAN tags came in, expected 3; captured twice and so marked: %v, expected %d", tags,
			duplicate, len(sent))
	}
}

func TestLoopbackOnce(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	for _, name := range []string{"lo", Any} {
		l := start(t, Options{Interface: name})
		to, err := net.ListenPacket("udp4", "127.0.0.1:7777")
		if err != nil {
			t.Fatal(err)
		}
		from, err := net.Dial("udp4", "127.0.0.1:7777")
		if err != nil {
			t.Fatal(err)
		}
		const n = 200
		for i := range n {
			if _, err := fmt.Fprintf(from, "datagram %d", i); err != nil {
				t.Fatal(err)
			}
		}
		i := 0
		toGame(t, l, n, func(f *capture.Frame, p *capture.Packet) {
			if want := fmt.Sprintf("datagram %d", i); string(p.Payload) != want || p.Duplicate {
				t.Errorf("on %s: %q (duplicate: %v), expected %q once", name, p.Payload, p.Duplicate, want)
			}
			i++
		})
		l.Stop()
		d := capture.NewDecoder(capture.DecodeOptions{})
		var f capture.Frame
		var p capture.Packet
		for err = l.Next(&f); err == nil; err = l.Next(&f) {
			if d.Decode(&f, &p); p.Transport == capture.UDP && p.Dst.Port() == 7777 {
				t.Errorf("on %s: %q once more", name, p.Payload)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("on %s after Stop: %v, expected io.EOF", name, err)
		}
		st, err := l.Statistics()
		if err != nil || st.OSDropped != 0 || st.FilterAccepted < n {
			t.Errorf("on %s: statistics %+v, %v", name, st, err)
		}
		_ = from.Close()
		_ = to.Close()
	}
}

// TestStopGivesWhatCame stops a capture before any of its frames were read.
func TestStopGivesWhatCame(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	l := start(t, Options{Interface: "veth0", SnapLength: 60})
	out := testnet.Inject(t, "veth1")
	const n = 100
	for i := range n {
		out.Send(t, ethernet(t, bytes.Repeat([]byte{byte(i)}, 200)))
	}
	arrived(t, l, n)
	l.Stop()
	var f capture.Frame
	got := 0
	for {
		err := l.Next(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Length == 14+20+8+200 && len(f.Data) == 60 {
			got++
		}
	}
	if got != n {
		t.Errorf("%d frames of 242 bytes, 60 captured, came out of the queue, expected %d", got, n)
	}
}

func TestDropsAreCounted(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	l := start(t, Options{Interface: "veth0", Buffer: 4096})
	out := testnet.Inject(t, "veth1")
	const n = 2000
	for range n {
		out.Send(t, ethernet(t, make([]byte, 1000)))
	}
	arrived(t, l, n)
	l.Stop()
	given := 0
	for f := (capture.Frame{}); l.Next(&f) == nil; {
		given++
	}
	st, err := l.Statistics()
	if err != nil {
		t.Fatal(err)
	}
	if st.OSDropped == 0 || st.FilterAccepted < n || uint64(given) != st.FilterAccepted-st.OSDropped {
		t.Errorf("%d given, statistics %+v: expected drops, and accepted less dropped to be given", given, st)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if again, err := l.Statistics(); err != nil || again != st {
		t.Errorf("after Close: %+v, %v, expected the same", again, err)
	}
}

func TestCloseWakes(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	l := start(t, Options{Interface: "lo"})
	woke := make(chan error)
	go func() {
		var f capture.Frame
		woke <- l.Next(&f)
	}()
	time.Sleep(50 * time.Millisecond)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-woke:
		if !errors.Is(err, io.EOF) {
			t.Errorf("Next after Close: %v, expected io.EOF", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("Close does not wake Next")
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	l := start(t, Options{Interface: "veth0"})
	out := testnet.Inject(t, "veth1")
	frame := ethernet(t, []byte("game"))
	var f capture.Frame
	if n := testing.AllocsPerRun(200, func() {
		out.Send(t, frame)
		if err := l.Next(&f); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

func TestNoSuchInterface(t *testing.T) {
	_, err := Open(Options{Interface: "nosuch0"})
	if err == nil || !strings.Contains(err.Error(), "nosuch0") {
		t.Errorf("%v: expected an error that names the interface", err)
	}
}

func TestDevices(t *testing.T) {
	devices, err := Devices()
	if err != nil {
		t.Fatal(err)
	}
	if len(devices) == 0 || devices[0].Name != Any {
		t.Fatalf("%+v: expected any first", devices)
	}
	real, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	if len(devices) != len(real)+1 {
		t.Errorf("%d devices, expected any and the %d that there are", len(devices), len(real))
	}
}

package afpacket

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testnet"
)

func startGroup(t *testing.T, names ...string) Group {
	t.Helper()
	var list []Options
	for _, n := range names {
		list = append(list, Options{Interface: n, Buffer: 2 << 20, Filter: "udp port 7777"})
	}
	g, err := OpenGroup(list)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// TestGroupInOrder captures on both ends of a pair. A frame that leaves one end
// arrives at the other end later.
func TestGroupInOrder(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	g := startGroup(t, "veth0", "veth1")
	out := testnet.Inject(t, "veth1")
	const n = 300
	go func() {
		for i := range n {
			out.Send(t, ethernet(t, fmt.Appendf(nil, "%03d", i)))
			time.Sleep(200 * time.Microsecond)
		}
		time.Sleep(20 * time.Millisecond)
		g.Stop()
	}()
	var seen [2][]string
	last := capture.Frame{}
	for f := (capture.Frame{}); ; {
		err := g.Next(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[f.Interface] = append(seen[f.Interface], string(f.Data[len(f.Data)-3:]))
		// Two rings hand over their blocks within a few milliseconds of each other.
		if f.At < last.At && last.At.Sub(f.At) > 50*time.Millisecond {
			t.Errorf("frame %d is %v older than the one before it", f.Ref.Frame(), last.At.Sub(f.At))
		}
		last.At = f.At
	}
	for i, s := range seen {
		if len(s) != n || s[0] != "000" || s[n-1] != fmt.Sprint(n-1) {
			t.Errorf("interface %d gave %d frames, expected %d", i, len(s), n)
		}
	}
	st, err := g.Statistics()
	if err != nil || len(st) != 2 || st[0].FilterAccepted != n || st[1].FilterAccepted != n {
		t.Fatalf("statistics %+v, %v; expected %d accepted on each", st, err, n)
	}
	if st[0].Known&capture.KnownReceived == 0 || st[0].Received < n {
		t.Errorf("veth0 is said to have received %d (%v), expected %d at least", st[0].Received, st[0].Known, n)
	}
	if names := g.Interfaces(); names[0].Name != "veth0" || names[1].Name != "veth1" {
		t.Errorf("interfaces %v", names)
	}
}

func TestGroupCloseWakes(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	for _, names := range [][]string{{"veth0"}, {"veth0", "veth1", "lo"}} {
		g := startGroup(t, names...)
		woke := make(chan error)
		go func() {
			var f capture.Frame
			woke <- g.Next(&f)
		}()
		time.Sleep(50 * time.Millisecond)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-woke:
			if !errors.Is(err, io.EOF) {
				t.Errorf("%v: Next after Close: %v, expected io.EOF", names, err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%v: Close does not wake Next", names)
		}
	}
}

func TestGroupAllOrNone(t *testing.T) {
	_, err := OpenGroup([]Options{{Interface: "lo"}, {Interface: "nosuch0"}})
	if err == nil || !strings.Contains(err.Error(), "nosuch0") && !strings.Contains(err.Error(), "CAP_NET_RAW") {
		t.Errorf("%v: expected an error that names the interface", err)
	}
}

// TestSocketHandedOver opens a capture with a socket that was opened before.
func TestSocketHandedOver(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	socket, err := Socket(Options{Interface: "veth0"})
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, Options{Interface: "veth0", Socket: socket})
	testnet.Inject(t, "veth1").Send(t, ethernet(t, []byte("game")))
	var f capture.Frame
	if err := l.Next(&f); err != nil || len(f.Data) == 0 {
		t.Errorf("%d bytes, %v", len(f.Data), err)
	}
}

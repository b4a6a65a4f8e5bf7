package afpacket

import (
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testnet"
)

// TestOutage takes the interface down, then up, then removes it. All frames
// that passed it must come, and each change must be reported.
func TestOutage(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	link := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", append([]string{"link"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("ip link %q: %v\n%s", args, err, out)
		}
	}
	for _, names := range [][]string{{"veth0"}, {"lo", "veth0"}} {
		notices := make(chan string, 10)
		var list []Options
		for _, n := range names {
			list = append(list,
				Options{Interface: n, Buffer: 2 << 20, Filter: "udp port 7777", Notice: func(text string) { notices <- text }})
		}
		g, err := OpenGroup(list)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() })
		expect := func(text string) {
			t.Helper()
			select {
			case got := <-notices:
				if want := "capturing on veth0: the interface " + text; got != want {
					t.Errorf("%v: told %q, expected %q", names, got, want)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%v: not told that the interface %s", names, text)
			}
		}
		var seen []string
		ended := make(chan error)
		go func() {
			for f := (capture.Frame{}); ; {
				if err := g.Next(&f); err != nil {
					ended <- err
					return
				}
				seen = append(seen, string(f.Data[len(f.Data)-1:]))
			}
		}()
		send := func(text string) {
			t.Helper()
			testnet.Inject(t, "veth1").Send(t, ethernet(t, []byte(text)))
		}
		send("a")
		link("set", "veth0", "down")
		expect("went down; the capture goes on once it is up again")
		link("set", "veth0", "up")
		expect("is up again")
		send("b")
		link("set", "veth0", "down")
		expect("went down; the capture goes on once it is up again")
		link("set", "veth0", "up")
		expect("is up again")
		send("c")
		link("del", "veth0")
		if len(names) > 1 {
			for told := ""; told != "was removed"; {
				if told = strings.TrimPrefix(<-notices, "capturing on veth0: the interface "); told != "was removed" &&
					!strings.HasPrefix(told, "went down") {
					t.Errorf("told %q, expected that it went down or was removed", told)
				}
			}
			g.Stop()
		}
		err = <-ended
		if len(names) > 1 && !errors.Is(err, io.EOF) || len(names) == 1 &&
			(err == nil || err.Error() != "capturing on veth0: the interface was removed") {
			t.Errorf("%v: ended by %v", names, err)
		}
		if want := []string{"a", "b", "c"}; !slices.Equal(seen, want) {
			t.Errorf("%v: %q came, expected %q", names, seen, want)
		}
		st, err := g.Statistics()
		if n := st[len(st)-1]; err != nil || n.FilterAccepted != 3 || n.OSDropped != 0 {
			t.Errorf("%v: %+v, %v; expected 3 accepted", names, st, err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		link("add", "veth0", "type", "veth", "peer", "name", "veth1")
		for _, n := range []string{"veth0", "veth1"} {
			link("set", n, "addrgenmode", "none")
			link("set", n, "up")
		}
	}
}

package afpacket

import (
	"slices"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/pcapfilter"
	"github.com/ackscope/ackscope/internal/testnet"
)

// TestFilterInForce compares verdicts of the kernel, which keeps the outer tag
// apart, with verdicts on whole frames. Next returns whole frames: the tag is
// back in place. A tagged frame passes a filter without vlan, as in tcpdump.
func TestFilterInForce(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	out := testnet.Inject(t, "veth1")
	sent := [][]byte{
		ethernet(t, []byte("none")),
		ethernet(t, []byte("one"), 0x81, 0, 0x20, 5),
		ethernet(t, []byte("two"), 0x88, 0xa8, 0, 9, 0x81, 0, 0, 5),
	}
	untagged := []int{0, 1} // in the kernel's view
	for _, c := range []struct {
		filter string
		passes []int // indexes into sent; nil for those that pass by whole frames
	}{
		{"vlan", nil},
		{"vlan 5", nil},
		{"vlan 9", nil},
		{"vlan and udp port 7777", nil},
		{"vlan and src host 10.9.0.1", nil},
		{"vlan 9 and vlan 5 and udp port 7777", nil},
		{"vlan and vlan 6", nil},
		{"vlan and not udp", nil},
		{"vlan and dst net 10.9.0.2/32", nil},
		{"udp dst port 7777", untagged},
		{"src net 10.9 and portrange 6000-7000", untagged},
		{"udp src port 7777", []int{}},
		{"ip6", []int{}},
		{"udp port 7777 or (vlan 9 and vlan and udp)", []int{0, 1, 2}},
	} {
		want := c.passes
		if want == nil {
			want = passing(t, c.filter, sent)
		}
		l, fence := start(t, Options{Interface: "veth0", Filter: c.filter}), start(t, Options{Interface: "veth0"})
		for _, frame := range sent {
			out.Send(t, frame)
		}
		arrived(t, fence, uint64(len(sent)))
		l.Stop()
		got := []int{}
		for f := (capture.Frame{}); l.Next(&f) == nil; {
			// The kernel announces its own addresses on a pair that has just come up.
			if i := slices.IndexFunc(sent, func(b []byte) bool { return string(b) == string(f.Data) }); i >= 0 {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q passes %v, expected %v", c.filter, got, want)
		}
		if l.Interface().Filter != c.filter {
			t.Errorf("the interface is said to be filtered by %q, expected %q", l.Interface().Filter, c.filter)
		}
	}
}

// passing returns the indexes of the frames that pass a filter on whole frames.
func passing(t *testing.T, filter string, frames [][]byte) []int {
	t.Helper()
	program, err := pcapfilter.Compile(filter, pcapfilter.EthernetBytes, 100)
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	out := []int{}
	for i, frame := range frames {
		if n, err := vm.Run(frame); err != nil {
			t.Fatal(err)
		} else if n > 0 {
			out = append(out, i)
		}
	}
	return out
}

// TestFilterOnAny checks filters that use kernel metadata, because there is no
// link header.
func TestFilterOnAny(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	out := testnet.Inject(t, "veth1")
	for filter, want := range map[string]int{
		"udp port 7777": 2, "vlan": 1, "vlan 5 and udp port 7777": 1, "vlan 6": 0,
		"not udp": 0, "host 10.9.0.2 and less 40": 2, "ip6 and udp": 0,
	} {
		l, fence := start(t, Options{Interface: Any, Filter: filter}),
			start(t, Options{Interface: "veth0", Filter: "udp port 7777"})
		out.Send(t, ethernet(t, []byte("none")))
		out.Send(t, ethernet(t, []byte("one"), 0x81, 0, 0x20, 5))
		arrived(t, fence, 2)
		l.Stop()
		got := 0
		d := capture.NewDecoder(capture.DecodeOptions{})
		var p capture.Packet
		for f := (capture.Frame{}); l.Next(&f) == nil; {
			// A frame that leaves the other end of the pair passes `any` there too.
			if d.Decode(&f, &p); p.Direction == capture.Inbound && p.Transport == capture.UDP {
				got++
			}
		}
		if got != want {
			t.Errorf("%q passes %d frames that come in, expected %d", filter, got, want)
		}
	}
}

func TestFilterRefused(t *testing.T) {
	if _, err := Open(Options{Interface: "lo", Filter: "udp port game"}); err == nil {
		t.Error("a filter with a name for a port was taken")
	}
}

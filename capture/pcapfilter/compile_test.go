package pcapfilter

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
)

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		filter string
		column int
		reason string
	}{
		{"host example.com", 6, "names are not looked up"},
		{"port domain", 6, "names are not looked up"},
		{"udp[8:3] = 1", 5, "a size of 1, 2 or 4"},
		{"udp[x] = 1", 5, "expected OFFSET or OFFSET:SIZE"},
		{"udp[65536] = 1", 5, "an offset to 65535"},
		{"udp[8", 6, "expected ]"},
		{"udp[", 5, "found the end"},
		{"udp[8:4]", 9, "a comparison"},
		{"udp[8:4] =", 11, "found the end"},
		{"udp[8:4] = 0x100000000", 12, "a number"},
		{"udp[8:4] & (1 = 1", 15, "closing parenthesis"},
		{"udp[8] + 1 = 2", 8, `"+" is not in the language`},
		{"esp[0] = 1", 4, "esp does not go with ["},
		{"len & 1", 8, "a comparison"},
		{"ether host 10.0.0.1", 12, "an Ethernet address"},
		{"ether host 00:11:22:33:44:55:66:77", 12, "an Ethernet address"},
		{"ether net 10", 11, "ether does not go with net"},
		{"ip broadcast", 4, "ip does not go with broadcast"},
		{"udp multicast", 5, "udp does not go with multicast"},
		{"outbound", 1, "live capture only"},
		{"ether and udp", 7, "behind ether"},
		{"udp host 10.0.0.1", 10, "udp does not go with host"},
		{"ip6 host 10.0.0.1", 10, "ip6 does not go with the address 10.0.0.1"},
		{"arp net fe80::/10", 9, "arp does not go with the address fe80::"},
		{"net 10.0.0.1/8", 5, "no bits set behind the network's"},
		{"net 10.0.0.0 mask 255.0.255.0", 19, "a mask of ones and then zeros"},
		{"src 10.0.0.0/8", 5, "say net before a network"},
		{"port 65536", 6, "a number to 65535"},
		{"port 010", 6, "decimal"},
		{"portrange 7", 11, "LOW-HIGH"},
		{"udp and", 8, "found the end"},
		{"udp udp", 5, `expected and, or or the end, found "udp"`},
		{"(udp", 5, "closing parenthesis"},
		{"udp)", 4, `found ")"`},
		{"7777", 1, `found "7777"`},
		{"udp or 7777", 8, `found "7777"`},
		{"not", 4, "found the end"},
		{"src or src host 1.2.3.4", 8, "expected dst, found \"src\""},
		{"src proto 17", 11, "a direction does not go with proto"},
		{"vlan 4096", 6, "a number to 4095"},
		{"host ::ffff:1.2.3.4", 6, "one within the other"},
		{"host fe80::1%eth0", 13, `"%" is not`},
		{"ip 10.0.0.1", 4, "expected and, or or the end"},
		{"gateway 1.2.3.4", 1, `found "gateway"`},
		{strings.Repeat("(", 100) + "udp" + strings.Repeat(")", 100), 65, "at most 64"},
		{strings.Repeat("udp or ", 1000) + "udp", 4097, "at most 4096 characters"},
	} {
		_, err := Compile(c.filter, EthernetBytes, 100)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: expected an error, got %v", c.filter, err)
			continue
		}
		if e.Column != c.column || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("%q: column %d: %s; expected column %d: …%s…", c.filter, e.Column, e.Reason, c.column, c.reason)
		}
	}
	for filter, why := range map[string]string{
		"vlan and vlan 3": "two tags are told apart", "udp or not ether[0] = 1": "the link header is read",
		"ether src 02:00:00:00:00:01": "the link header is read",
		"udp and (multicast or tcp)":  "the link header is read",
	} {
		if _, err := Compile(filter, CookedSocket, 100); err == nil {
			t.Errorf("%q: %s on a cooked socket, which does not show it", filter, why)
		}
	}
}

// TestLongJumps compiles a filter that needs longer jumps than a conditional
// one, and checks its verdicts.
func TestLongJumps(t *testing.T) {
	filter := "udp port 1"
	for range 150 {
		filter += " or 2"
	}
	filter += " or 9"
	program, err := Compile(filter, EthernetBytes, 65535)
	if err != nil {
		t.Fatal(err)
	}
	if len(program) < 2*longestJump {
		t.Fatalf("%d instructions do not need a long jump", len(program))
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	for last, want := range map[byte]bool{1: true, 9: true, 3: false} {
		p := append(make([]byte, 12), 8, 0, 0x45)
		p = append(p, make([]byte, 60)...)
		p[23], p[37] = 17, last
		if n, err := vm.Run(p); err != nil || n > 0 != want {
			t.Errorf("port %d: %d, %v; expected %t", last, n, err, want)
		}
	}
	if _, err := Compile(strings.Repeat("port 1 or ", 400)+"port 1", EthernetBytes, 1); err == nil ||
		!strings.Contains(err.Error(), "4096 instructions") {
		t.Errorf("a program longer than the kernel takes: %v", err)
	}
}

func TestParseRaw(t *testing.T) {
	got, err := ParseRaw("2\n40 0 0 12\n6 0 0 96\n")
	if err != nil || len(got) != 2 || got[0] != (bpf.RawInstruction{Op: 40, K: 12}) ||
		got[1] != (bpf.RawInstruction{Op: 6, K: 96}) {
		t.Errorf("%v, %v", got, err)
	}
	if same, err := ParseRaw("2,40 0 0 12,6 0 0 96"); err != nil || same[1] != got[1] {
		t.Errorf("with commas: %v, %v", same, err)
	}
	for _, bad := range []string{"", "x", "0", "2\n6 0 0 1", "1\n6 0 0", "1\n6 0 0 1\n6 0 0 1", "1\n6 256 0 1", "4097\n"} {
		if _, err := ParseRaw(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, e := range expressions {
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, filter string) {
		for _, target := range []Target{EthernetBytes, EthernetSocket, CookedSocket} {
			program, err := Compile(filter, target, 96)
			if err != nil {
				continue
			}
			if _, err := bpf.Assemble(program); err != nil {
				t.Fatalf("%q: %v", filter, err)
			}
			if len(program) > longestProgram {
				t.Fatalf("%q: %d instructions", filter, len(program))
			}
			if target != EthernetBytes {
				continue
			}
			vm, err := bpf.NewVM(program)
			if err != nil {
				t.Fatalf("%q: %v", filter, err)
			}
			if _, err := vm.Run([]byte(filter)); err != nil {
				t.Fatalf("%q: %v", filter, err)
			}
		}
	})
}

package pcapfilter

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/ackscope/ackscope/internal/testenv"
)

// expressions that tcpdump accepts too.
var expressions = []string{
	"", "ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp", "icmp", "icmp6",
	"udp port 7777", "port 53", "tcp port 80", "sctp port 7777", "src port 7777", "dst port 7777", "udp src port 7777",
	"udp dst port 53",
	"src and dst port 7777", "src or dst port 53", "udp src or dst port 53", "tcp src and dst port 7777",
	"portrange 7777-7780", "udp portrange 7777-7780", "src portrange 50-60", "udp dst portrange 80-53",
	"host 10.0.0.1", "src host 10.0.0.1", "dst host 10.0.0.2", "src 10.0.0.1", "dst 10.0.0.2", "src and dst host 10.0.0.1",
	"ip host 10.0.0.1", "arp host 10.0.0.2", "rarp src host 10.0.0.1", "host fe80::1", "ip6 host 2001:db8::2",
	"src host ::1", "dst 2001:db8::2",
	"net 10.0.0.0/8", "net 10", "net 192.168.1", "net 192.168.1.0 mask 255.255.255.0", "src net 10.0.0.0/31",
	"dst net 192.168.0.0/16", "ip net 10.0", "arp net 10.0.0.0/24",
	"net fe80::/10", "net 2001:db8::/32", "src net 2001:db8::/127", "net 2001:db8::/64", "ip6 net fe80::/64",
	"net 0.0.0.0/0", "net ::/0",
	"ip proto 17", "ip6 proto 17", "proto 6", "ip proto 0x11", "ether proto 0x0806", "ether proto 2048", "ip6 proto 44",
	"not udp", "! port 53", "not host 10.0.0.1", "udp and not port 53", "not (udp port 53 or tcp port 80)", "not not udp",
	"udp port 7777 and host 10.0.0.1", "udp port 7777 and not host 10.0.0.2", "not port 53 and udp",
	"ip6 and udp port 7777", "udp or tcp and port 53", "tcp or (udp and port 53)",
	"port 53 or 7777", "host 10.0.0.1 or 10.0.0.2 and port 53", "udp port 7777 or not 53", "udp && (port 53 || port 7777)",
	"src host 10.0.0.1 and dst host 10.0.0.2", "src net 10 or dst port 53",
	"vlan", "vlan 5", "not vlan", "vlan and udp", "vlan 5 and udp port 7777", "vlan and vlan 6",
	"vlan 5 and vlan and host 10.0.0.1", "vlan or udp", "udp or vlan 5 and udp",
	"udp port 7777 or (vlan and udp port 7777)", "not (vlan 5 and tcp) and udp",
	"less 140", "greater 140", "udp and greater 180", "udp or less 40",
	"udp[8:4] = 0x01020304", "udp[8] & 1 != 0", "udp[0:2] > 7776", "udp[2:2]<=53", "udp[8:2] & 0x0f0f == 0x0102 or tcp",
	"not udp[8] = 1", "udp port 7777 and udp[8:2] < 0x0200",
	"tcp[13] & 2 != 0", "tcp[tcpflags] & (tcp-syn|tcp-ack) != 0", "tcp[tcpflags]&(tcp-syn|tcp-fin)=tcp-syn",
	"tcp[tcpflags] = tcp-syn | tcp-ack", "icmp[icmptype] = icmp-echo", "icmp[icmpcode] >= 2",
	"ip[6:2] & 0x1fff != 0", "ip[0] & 0xf > 5", "ip6[6] = 17", "ip6[24:4] = 0x20010db8", "arp[24:4] = 0x0a000001",
	"icmp6[icmp6type] = 1", "sctp[0:2] = 7777", "igmp[0] < 4", "len > 140", "len <= 120 and udp", "len != 130",
	"vlan and udp[8] & 3 = 1", "vlan and ip[9] = 17", "vlan 5 and vlan and tcp[13] & 1 = 1",
	"igmp", "esp", "ah", "ip multicast", "ip6 multicast", "ether host 02:00:00:00:00:01", "ether src 02:00:00:00:00:01",
	"ether dst ff:ff:ff:ff:ff:ff", "ether src or dst 02:00:00:00:00:02",
	"ether src and dst host 0200.0000.0001", "broadcast", "ether multicast", "multicast and udp",
	"ether host 02:00:00:00:00:01 or 02:00:00:00:00:02", "ether[0] & 1 = 0", "ether[12:2] = 0x0800",
	"ether[6:4] = 0x02000000",
	"vlan and ip multicast", "vlan and ether host 02:00:00:00:00:01", "udp[20:4] = 0x01010101 and not ip6",
}

// TestVerdictsOfTcpdump compares our programs with tcpdump's over random
// packets whose values are near those that the expressions test.
func TestVerdictsOfTcpdump(t *testing.T) {
	testenv.Grid(t, "tcpdump for every filter")
	testenv.Need(t, "tcpdump")
	packets := 10000
	if testing.Short() {
		packets = 1000
	}
	empty := filepath.Join(t.TempDir(), "empty.pcap")
	header := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	header = binary.LittleEndian.AppendUint16(header, 2)
	header = binary.LittleEndian.AppendUint16(header, 4)
	header = append(header, make([]byte, 8)...)
	header = binary.LittleEndian.AppendUint32(header, 65535)
	header = binary.LittleEndian.AppendUint32(header, 1) // Ethernet
	if err := os.WriteFile(empty, header, 0o600); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var traffic [][]byte
	for range packets {
		traffic = append(traffic, packet(r))
	}
	whole := slices.DeleteFunc(slices.Clone(traffic), cut)
	if len(expressions) < 60 {
		t.Fatalf("%d expressions", len(expressions))
	}
	all := slices.Clone(expressions)
	for range 60 {
		all = append(all, compound(r, 3))
	}
	plain := 0
	for n, e := range all {
		traffic := traffic
		if n >= len(expressions) {
			// A program that reads beyond a packet's end refuses the packet. libpcap's
			// optimizer omits reads of compound expressions that cannot change the
			// outcome.
			traffic = whole
		}
		var said bytes.Buffer
		tcpdump := exec.Command("tcpdump", "-ddd", "-r", empty, e)
		tcpdump.Stderr = &said
		out, err := tcpdump.Output()
		if err != nil {
			if n < len(expressions) || !strings.Contains(said.String(), "rejects all packets") {
				t.Errorf("%q: tcpdump: %v: %s", e, err, &said)
			}
			continue
		}
		raw, err := ParseRaw(string(out))
		if err != nil {
			t.Errorf("%q: %v", e, err)
			continue
		}
		theirs := machine(t, disassembled(t, e, raw))
		program, err := Compile(e, EthernetBytes, 65535)
		if err != nil {
			t.Error(err)
			continue
		}
		ours := machine(t, program)
		passed := 0
		for i, p := range traffic {
			a, b := verdict(t, e, ours, p), verdict(t, e, theirs, p)
			if a != b {
				t.Errorf("%q: packet %d: ours passes it: %t, tcpdump's: %t\n% x", e, i, a, b, p)
				break
			}
			if a {
				passed++
			}
		}
		if passed == 0 || passed == len(traffic) {
			plain++
			t.Logf("%q: %d of %d pass", e, passed, len(traffic))
		}
	}
	if plain > len(all)/5 {
		t.Errorf("%d expressions tell no packet from another: the traffic does not try them", plain)
	}
}

// compound combines expressions at random.
func compound(r *rand.Rand, depth int) string {
	if depth == 0 {
		return expressions[1+r.IntN(len(expressions)-1)]
	}
	switch r.IntN(4) {
	case 0:
		return "not (" + compound(r, depth-1) + ")"
	case 1:
		return "(" + compound(r, depth-1) + ") and " + compound(r, depth-1)
	case 2:
		return "(" + compound(r, depth-1) + ") or (" + compound(r, depth-1) + ")"
	}
	return compound(r, depth-1)
}

func disassembled(t *testing.T, filter string, raw []bpf.RawInstruction) []bpf.Instruction {
	t.Helper()
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatalf("%q: tcpdump's program has instructions that are unknown here", filter)
	}
	return program
}

func machine(t *testing.T, program []bpf.Instruction) *bpf.VM {
	t.Helper()
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func verdict(t *testing.T, filter string, vm *bpf.VM, p []byte) bool {
	t.Helper()
	n, err := vm.Run(p)
	if err != nil {
		t.Fatalf("%q: %v", filter, err)
	}
	return n > 0
}

// packet makes a packet near what the expressions test: the value of each field
// is one of theirs, or one beside it. Some packets are cut.
func packet(r *rand.Rand) []byte {
	pick := func(values ...uint16) uint16 { return values[r.IntN(len(values))] }
	station := func() []byte {
		return [][]byte{
			{2, 0, 0, 0, 0, 1},
			{2, 0, 0, 0, 0, 2},
			{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
			{1, 0, 0x5e, 0, 0, 1},
		}[r.IntN(4)]
	}
	p := append(append(make([]byte, 0, 300), station()...), station()...)
	for range []int{0, 0, 1, 2}[r.IntN(4)] {
		p = binary.BigEndian.AppendUint16(p, pick(0x8100, 0x8100, 0x88a8, 0x9100))
		p = binary.BigEndian.AppendUint16(p, pick(5, 6, 0x2005, 0xf006, 7))
	}
	kind := pick(0x0800, 0x0800, 0x0800, 0x86dd, 0x86dd, 0x86dd, 0x0806, 0x8035, 0x1234)
	p = binary.BigEndian.AppendUint16(p, kind)
	address4 := func() []byte {
		return [][]byte{
			{10, 0, 0, 1},
			{10, 0, 0, 2},
			{10, 0, 0, 0},
			{10, 1, 0, 9},
			{192, 168, 1, 7},
			{192, 168, 2, 7},
			{11, 0, 0, 1},
			{224, 0, 0, 1},
		}[r.IntN(8)]
	}
	address6 := func() []byte {
		a := [][]byte{
			{0xfe, 0x80},
			{0x20, 0x01, 0x0d, 0xb8},
			{0},
			{0x20, 0x01, 0x0d, 0xb9},
			{0xfe, 0xc0},
			{0xff, 2},
		}[r.IntN(6)]
		out := make([]byte, 16)
		copy(out, a)
		out[7], out[15] = byte(r.IntN(12)/11), byte(r.IntN(3))
		return out
	}
	proto := byte(pick(6, 17, 17, 17, 1, 2, 58, 132, 44, 50, 51))
	switch kind {
	case 0x0800:
		words := 5 + r.IntN(2)*r.IntN(11)
		h := make([]byte, 4*words)
		h[0], h[9] = byte(0x40+words), proto
		binary.BigEndian.PutUint16(h[6:], pick(0, 0, 0, 0x4000, 0x2000, 1, 0x1fff))
		copy(h[12:], address4())
		copy(h[16:], address4())
		p = append(p, h...)
	case 0x86dd:
		h := make([]byte, 40)
		h[0], h[6] = 0x60, proto
		copy(h[8:], address6())
		copy(h[24:], address6())
		p = append(p, h...)
		if proto == 44 {
			p = append(p, byte(pick(17, 6, 58)), 0, 0, 1, 0, 0, 0, 0)
		}
	default:
		h := make([]byte, 28)
		copy(h[14:], address4())
		copy(h[24:], address4())
		p = append(p, h...)
	}
	for range 2 {
		p = binary.BigEndian.AppendUint16(p, pick(7777, 7778, 7780, 7781, 7776, 53, 52, 80, 81, 55))
	}
	content := make([]byte, room+r.IntN(60))
	for i := range content {
		content[i] = byte(r.IntN(4))
	}
	copy(content[4:], [][]byte{{1, 2, 3, 4}, {1, 1}, {0, 9, 8, 7}, nil}[r.IntN(4)])
	if r.IntN(4) == 0 {
		copy(content[16:], []byte{1, 1, 1, 1})
	}
	p = append(p, content...)
	if r.IntN(10) == 0 {
		p = p[:r.IntN(len(p))]
	}
	return p
}

// room is the number of bytes in every whole packet after its tags: all that an
// expression reads lies within, whatever protocol it assumes.
const room = 80

func cut(p []byte) bool { return len(p) < room+12 }

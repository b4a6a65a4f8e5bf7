package pcapfilter

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
)

// kernelPacket is a packet as the kernel shows it to a filter: without its
// outer VLAN tag, which is in the metadata.
type kernelPacket struct {
	bytes   []byte
	network int // offset of the network header
	length  uint32
	kind    uint32 // type of what follows the link header and the tag
	tagged  bool
	tag     uint32
	sent    bool // by this host
}

// kernelView removes the outer tag of a frame, as the kernel does. A cooked
// view has no link header either.
func kernelView(frame []byte, sent, cooked bool) kernelPacket {
	v := kernelPacket{bytes: slices.Clone(frame), sent: sent}
	if kind := binary.BigEndian.Uint16(frame[12:]); kind == 0x8100 || kind == 0x88a8 {
		v.tagged, v.tag = true, uint32(binary.BigEndian.Uint16(frame[14:]))
		v.bytes = slices.Delete(v.bytes, 12, 16)
	}
	v.kind, v.network = uint32(binary.BigEndian.Uint16(v.bytes[12:])), etherHeader
	if cooked {
		v.bytes, v.network = v.bytes[etherHeader:], 0
	}
	v.length = uint32(len(v.bytes))
	return v
}

// sll2 prepends the header of a cooked packet that libpcap's programs read.
func (v *kernelPacket) sll2() kernelPacket {
	header := binary.BigEndian.AppendUint16(make([]byte, 0, 20), uint16(v.kind))
	header = append(header, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0)
	if v.sent {
		header[10] = packetOutgoing
	}
	out := *v
	out.bytes = append(header, v.bytes...)
	return out
}

// run is a BPF machine with the kernel's extensions.
func run(t *testing.T, program []bpf.Instruction, p *kernelPacket) bool {
	t.Helper()
	var a, x uint32
	var scratch [16]uint32
	load := func(at uint32, size int) bool {
		offset := int(at)
		if at >= networkHeader {
			offset = int(at-networkHeader) + p.network
		}
		if offset+size > len(p.bytes) {
			return false
		}
		a = 0
		for _, b := range p.bytes[offset : offset+size] {
			a = a<<8 | uint32(b)
		}
		return true
	}
	jump := func(test bpf.JumpTest, v uint32, yes, no uint8) int {
		is := map[bpf.JumpTest]bool{
			bpf.JumpEqual: a == v, bpf.JumpNotEqual: a != v, bpf.JumpGreaterThan: a > v, bpf.JumpLessThan: a < v,
			bpf.JumpGreaterOrEqual: a >= v, bpf.JumpLessOrEqual: a <= v, bpf.JumpBitsSet: a&v != 0, bpf.JumpBitsNotSet: a&v == 0,
		}[test]
		if is {
			return int(yes)
		}
		return int(no)
	}
	alu := func(op bpf.ALUOp, v uint32) {
		switch op {
		case bpf.ALUOpAdd:
			a += v
		case bpf.ALUOpSub:
			a -= v
		case bpf.ALUOpAnd:
			a &= v
		case bpf.ALUOpOr:
			a |= v
		case bpf.ALUOpShiftLeft:
			a <<= v
		default:
			t.Fatalf("operation %v", op)
		}
	}
	flag := func(b bool, v uint32) uint32 {
		if b {
			return v
		}
		return 0
	}
	for at := 0; ; at++ {
		ok := true
		switch i := program[at].(type) {
		case bpf.LoadAbsolute:
			ok = load(i.Off, i.Size)
		case bpf.LoadIndirect:
			ok = load(i.Off+x, i.Size)
		case bpf.LoadMemShift:
			kept := a
			if ok = load(i.Off, 1); ok {
				x = a & 0xf << 2
			}
			a = kept
		case bpf.LoadConstant:
			if i.Dst == bpf.RegA {
				a = i.Val
			} else {
				x = i.Val
			}
		case bpf.LoadScratch:
			if i.Dst == bpf.RegA {
				a = scratch[i.N]
			} else {
				x = scratch[i.N]
			}
		case bpf.StoreScratch:
			if i.Src == bpf.RegA {
				scratch[i.N] = a
			} else {
				scratch[i.N] = x
			}
		case bpf.LoadExtension:
			switch i.Num {
			case bpf.ExtLen:
				a = p.length
			case bpf.ExtProto:
				a = p.kind
			case bpf.ExtType:
				a = flag(p.sent, packetOutgoing)
			case bpf.ExtVLANTag:
				a = flag(p.tagged, p.tag)
			case bpf.ExtVLANTagPresent:
				a = flag(p.tagged, 1)
			default:
				t.Fatalf("extension %v", i.Num)
			}
		case bpf.ALUOpConstant:
			alu(i.Op, i.Val)
		case bpf.ALUOpX:
			alu(i.Op, x)
		case bpf.TAX:
			x = a
		case bpf.TXA:
			a = x
		case bpf.Jump:
			at += int(i.Skip)
		case bpf.JumpIf:
			at += jump(i.Cond, i.Val, i.SkipTrue, i.SkipFalse)
		case bpf.JumpIfX:
			at += jump(i.Cond, x, i.SkipTrue, i.SkipFalse)
		case bpf.RetConstant:
			return i.Val > 0
		default:
			t.Fatalf("instruction %v", i)
		}
		if !ok {
			return false
		}
	}
}

// onSockets are expressions that apply to live captures only.
var onSockets = []string{"inbound", "outbound and udp", "not outbound", "inbound and vlan 5"}

// TestVerdictsOnSockets compares our programs with those that tcpdump attaches
// to its sockets, on an interface and on any, over packets as the kernel shows
// them.
func TestVerdictsOnSockets(t *testing.T) {
	testenv.Grid(t, "tcpdump for every filter, on sockets")
	testenv.Need(t, "tcpdump")
	if !testnet.Namespaced(t) {
		return
	}
	packets := 3000
	if testing.Short() {
		packets = 500
	}
	r := rand.New(rand.NewPCG(3, 4))
	var frames [][]byte
	for len(frames) < packets {
		if p := packet(r); !cut(p) {
			frames = append(frames, p)
		}
	}
	for _, kind := range []struct {
		device string
		target Target
	}{{"veth0", EthernetSocket}, {"any", CookedSocket}} {
		var views, theirViews []kernelPacket
		for _, f := range frames {
			v := kernelView(f, r.IntN(2) == 0, kind.target == CookedSocket)
			views = append(views, v)
			if kind.target == CookedSocket {
				v = v.sll2()
			}
			theirViews = append(theirViews, v)
		}
		compared := 0
		for n, e := range append(slices.Clone(expressions), onSockets...) {
			tag := strings.Contains(e, "vlan")
			if kind.target == EthernetSocket && !tag && n < len(expressions) || kind.target == CookedSocket && n%7 > 0 &&
				n < len(expressions) {
				continue // tcpdump used the program for a file, which the other test checks; or there are enough of this kind
			}
			var said bytes.Buffer
			tcpdump := exec.Command("tcpdump", "-ddd", "-i", kind.device, e)
			tcpdump.Stderr = &said
			out, err := tcpdump.Output()
			ours, ourErr := Compile(e, kind.target, 65535)
			if err != nil {
				// On any, libpcap accepts neither vlan nor most of ether.
				if !tag && !strings.Contains(e, "ether") && !strings.Contains(e, "cast") {
					t.Errorf("%s: %q: tcpdump: %v: %s", kind.device, e, err, &said)
				}
				continue
			}
			if ourErr != nil {
				t.Logf("%s: %q: only tcpdump takes it: %v", kind.device, e, ourErr)
				continue
			}
			raw, err := ParseRaw(string(out))
			if err != nil {
				t.Errorf("%q: %v", e, err)
				continue
			}
			compared++
			theirs := disassembled(t, e, raw)
			for i := range views {
				if a, b := run(t, ours, &views[i]), run(t, theirs, &theirViews[i]); a != b {
					t.Errorf("%s: %q: packet %d: ours passes it: %t, tcpdump's: %t\n% x", kind.device, e, i, a, b, frames[i])
					break
				}
			}
		}
		t.Logf("%s: %d expressions", kind.device, compared)
	}
}

// TestCookedAsEthernet compares the verdicts on any, where tcpdump accepts no
// vlan, with those on an interface.
func TestCookedAsEthernet(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var frames [][]byte
	for len(frames) < 1000 {
		if p := packet(r); !cut(p) {
			frames = append(frames, p)
		}
	}
	compared := 0
	for _, e := range append(slices.Clone(expressions), onSockets...) {
		if strings.Contains(e, "len") || strings.Contains(e, "less") || strings.Contains(e, "greater") ||
			!strings.Contains(e, "vlan") {
			continue // there the length excludes the link header
		}
		cooked, err := Compile(e, CookedSocket, 65535)
		if err != nil {
			continue
		}
		ethernet, err := Compile(e, EthernetSocket, 65535)
		if err != nil {
			t.Fatal(err)
		}
		compared++
		for i, f := range frames {
			x, y := kernelView(f, i%2 == 0, false), kernelView(f, i%2 == 0, true)
			if a, b := run(t, ethernet, &x), run(t, cooked, &y); a != b {
				t.Errorf("%q: packet %d passes on an interface: %t, on any: %t\n% x", e, i, a, b, f)
				break
			}
		}
	}
	if compared < 10 {
		t.Errorf("%d expressions with vlan were compared", compared)
	}
}

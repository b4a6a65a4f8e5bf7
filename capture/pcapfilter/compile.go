package pcapfilter

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/bpf"
)

// Compile translates a filter. For a packet that passes, the program returns
// snap, the number of bytes to keep. For any other packet it returns 0. snap
// must be at least 1. An empty filter passes everything. For a filter outside
// the language Compile returns an *Error.
func Compile(filter string, target Target, snap uint32) ([]bpf.Instruction, error) {
	n, err := parse(filter)
	if err != nil {
		return nil, err
	}
	c := &code{target: target}
	if tags := countTags(n); tags > 0 && target != EthernetBytes {
		if c.tagged = true; tags > 1 && target == CookedSocket {
			return nil, &Error{
				Filter: filter, Column: 1,
				Reason: "expected one vlan at most where packets come without their link header (-i any): what is behind a " +
					"second tag cannot be told there",
			}
		}
	}
	if err := unsupported(n, target); err != "" {
		return nil, &Error{Filter: filter, Column: 1, Reason: err}
	}
	c.prologue()
	yes, no := c.label(), c.label()
	n.generate(c, yes, no)
	c.place(yes)
	c.emit(bpf.RetConstant{Val: max(snap, 1)})
	c.place(no)
	c.emit(bpf.RetConstant{Val: 0})
	return c.assemble()
}

// unsupported returns the reason why a target cannot evaluate a filter, or an
// empty string if it can.
func unsupported(n node, target Target) string {
	switch n := n.(type) {
	case negation:
		return unsupported(n.of, target)
	case conjunction:
		return cmp.Or(unsupported(n.left, target), unsupported(n.right, target))
	case disjunction:
		return cmp.Or(unsupported(n.left, target), unsupported(n.right, target))
	case content:
		if n.of == "ether" && target == CookedSocket {
			return noLinkHeader
		}
	case station:
		if target == CookedSocket {
			return noLinkHeader
		}
	case groupAddress:
		if n.of == "ether" && target == CookedSocket {
			return noLinkHeader
		}
	case outgoing:
		if target == EthernetBytes {
			return "inbound and outbound are told on a live capture only"
		}
	}
	return ""
}

const noLinkHeader = "expected nothing of ether: packets come without their link header (-i any)"

func countTags(n node) int {
	switch n := n.(type) {
	case negation:
		return countTags(n.of)
	case conjunction:
		return countTags(n.left) + countTags(n.right)
	case disjunction:
		return countTags(n.left) + countTags(n.right)
	case tag:
		return 1
	}
	return 0
}

// ParseRaw reads a program in the format of `tcpdump -ddd`. The first line is
// the number of instructions. Each other line is one instruction: four decimal
// numbers for code, jump if true, jump if false, and value. A comma may replace
// the end of a line.
func ParseRaw(text string) ([]bpf.RawInstruction, error) {
	lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(text, ",", "\n")))
	count, out := -1, []bpf.RawInstruction(nil)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if count < 0 {
			v, err := strconv.ParseUint(fields[0], 10, 16)
			if err != nil || len(fields) != 1 || v == 0 || v > longestProgram {
				return nil, fmt.Errorf("BPF program, line %d: expected the number of its instructions, 1 to %d, found another "+
					"line of %d bytes", n, longestProgram, len(lines.Text()))
			}
			count = int(v)
			continue
		}
		var v [4]uint64
		var errs [4]error
		if len(fields) == len(v) {
			for i, bits := range [...]int{16, 8, 8, 32} {
				v[i], errs[i] = strconv.ParseUint(fields[i], 10, bits)
			}
		}
		if len(fields) != len(v) || errors.Join(errs[:]...) != nil {
			return nil, fmt.Errorf("BPF program, line %d: expected code, two jumps and a value, found another line of %d bytes",
				n, len(lines.Text()))
		}
		if len(out) == count {
			return nil, fmt.Errorf(
				"BPF program, line %d: expected the end behind %d instructions, found another line of %d bytes", n, count,
				len(lines.Text()))
		}
		out = append(out, bpf.RawInstruction{Op: uint16(v[0]), Jt: uint8(v[1]), Jf: uint8(v[2]), K: uint32(v[3])})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("BPF program: %w", err)
	}
	if count < 0 || len(out) != count {
		return nil, fmt.Errorf("BPF program: expected %d instructions, found %d", max(count, 1), len(out))
	}
	return out, nil
}

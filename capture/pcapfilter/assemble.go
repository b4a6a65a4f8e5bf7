package pcapfilter

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// label is a position in a program that is not known yet.
type label int

// code collects a program with labels. All jumps go forward, as classic BPF
// demands. So a label is placed after every jump to it.
type code struct {
	steps  []step
	places []int // of each label, the index of the step that follows it
	target Target
	tagged bool // the expression has a vlan, and the target hides tags
}

// step is an instruction, or a jump to labels.
type step struct {
	plain    bpf.Instruction // nil for a jump
	test     bpf.JumpTest
	value    uint32
	yes, no  label
	straight bool // an unconditional jump, to yes
	far      bool // the labels are too distant for a conditional jump
}

// longestJump is the longest conditional jump, in instructions.
const longestJump = 255

// longestProgram is the kernel's limit (BPF_MAXINSNS).
const longestProgram = 4096

func (c *code) label() label {
	c.places = append(c.places, -1)
	return label(len(c.places) - 1)
}

func (c *code) place(l label) { c.places[l] = len(c.steps) }

func (c *code) emit(i ...bpf.Instruction) {
	for _, one := range i {
		c.steps = append(c.steps, step{plain: one})
	}
}

func (c *code) jump(test bpf.JumpTest, value uint32, yes, no label) {
	c.steps = append(c.steps, step{test: test, value: value, yes: yes, no: no})
}

func (c *code) jumpTo(l label) { c.steps = append(c.steps, step{straight: true, yes: l}) }

func (s *step) size() int {
	if s.far {
		return 3
	}
	return 1
}

// assemble resolves the labels. A conditional jump whose labels are too distant
// is followed by two unconditional jumps that lead there. Each insertion moves
// the rest of the program, so assemble repeats until nothing changes.
func (c *code) assemble() ([]bpf.Instruction, error) {
	var at []int
	for again := true; again; {
		again = false
		at = at[:0]
		n := 0
		for i := range c.steps {
			at = append(at, n)
			n += c.steps[i].size()
		}
		at = append(at, n)
		if n > longestProgram {
			return nil, fmt.Errorf("expected a capture filter of at most %d instructions, found %d: say it shorter",
				longestProgram, n)
		}
		for i := range c.steps {
			s := &c.steps[i]
			if s.plain != nil || s.straight || s.far {
				continue
			}
			if at[c.places[s.yes]]-at[i]-1 > longestJump || at[c.places[s.no]]-at[i]-1 > longestJump {
				s.far, again = true, true
			}
		}
	}
	out := make([]bpf.Instruction, 0, at[len(at)-1])
	for i := range c.steps {
		s := &c.steps[i]
		skip := func(l label, after int) uint32 { return uint32(at[c.places[l]] - at[i] - after) }
		switch {
		case s.plain != nil:
			out = append(out, s.plain)
		case s.straight:
			out = append(out, bpf.Jump{Skip: skip(s.yes, 1)})
		case s.far:
			out = append(out, bpf.JumpIf{Cond: s.test, Val: s.value, SkipTrue: 0, SkipFalse: 1},
				bpf.Jump{Skip: skip(s.yes, 2)}, bpf.Jump{Skip: skip(s.no, 3)})
		default:
			out = append(out,
				bpf.JumpIf{Cond: s.test, Val: s.value, SkipTrue: uint8(skip(s.yes, 1)), SkipFalse: uint8(skip(s.no, 1))})
		}
	}
	return out, nil
}

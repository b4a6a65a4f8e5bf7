package main

import (
	"encoding/binary"
	"slices"
)

// jumps counts the jumps of functions, by what became of them.
type jumps struct {
	direct int
	back   int // they lead back, and stay
	other  int // functions whose local 0 serves something else, and that stay
}

// dispatch is how a function begins that jumps by a table.
type dispatch struct {
	begin    int   // offset of what follows the table
	table    []int // section, by what local 0 has; the last one is for all else
	sections int
}

// dispatchOf reads the start of a function. It returns false where the function does not jump by a
// table.
func dispatchOf(d *decoder) (x dispatch, ok bool) {
	for n := d.unsigned(); n > 0 && d.err == nil; n-- { // declarations of locals
		d.unsigned()
		d.byte()
	}
	var opened []byte
	op, before := byte(0), d.at
	for at := d.at; d.err == nil; at = d.at {
		if op = d.instruction(); op != opGlobalGet && op != opLocalSet {
			before = at
			break
		}
	}
	for ; op == opBlock || op == opLoop; op = d.instruction() {
		opened = append(opened, op)
		before = d.at
	}
	if op != opLocalGet || !isLocal0(d.b[before:d.at]) || d.instruction() != opBrTable || d.err != nil {
		return x, false
	}
	t := &decoder{b: d.b[before:d.at]}
	t.skip(3) // local.get 0, and the first byte of br_table
	for n := t.unsigned() + 1; n > 0; n-- {
		section := int(t.unsigned())
		x.table = append(x.table, section)
		x.sections = max(x.sections, section+1)
	}
	x.begin = d.at
	loop := len(opened) - x.sections - 1 // the blocks of the sections are inside it
	return x, loop >= 0 && opened[loop] == opLoop && !slices.Contains(opened[loop+1:], opLoop)
}

// isLocal0 reports whether an instruction concerns local 0.
func isLocal0(instruction []byte) bool { return len(instruction) == 2 && instruction[1] == 0 }

// rewrite returns the body of a function with direct jumps.
func (j *jumps) rewrite(body []byte, of *decoder) []byte {
	d := &decoder{b: body}
	x, ok := dispatchOf(d)
	if d.err != nil {
		of.fail(d.err)
	}
	if !ok {
		return body
	}
	w := &walk{dispatch: x, section: -1}
	out := w.walk(d)
	switch {
	case d.err != nil:
		of.fail(d.err)
		return body
	case w.other:
		j.other++
		return body
	}
	j.direct += w.direct
	j.back += w.back
	return out
}

// walk goes through the instructions behind the table.
type walk struct {
	dispatch
	jumps
	section int // -1 before the first; from sections on behind the loop
	nested  int // blocks that are open within the section
	other   bool
}

func (w *walk) walk(d *decoder) []byte {
	out, done := slices.Clone(d.b[:w.begin]), w.begin // all before done is in out
	var last [2]int                                   // where the instruction before began, and the one before that
	for at := d.at; d.err == nil && at < len(d.b); at = d.at {
		switch op := d.instruction(); op {
		case opBlock, opLoop, opIf:
			w.nested++
		case opEnd:
			if w.nested > 0 {
				w.nested--
			} else {
				w.section++
			}
		case opI32Const:
			if depth, ok := w.jump(d, at); ok {
				out = binary.AppendUvarint(append(append(out, d.b[done:at]...), opBr), depth)
				done = d.at
			}
		case opLocalGet, opLocalTee:
			// Go also uses local 0 to put what it calls on top of a zero.
			if isLocal0(d.b[at:d.at]) && string(d.b[last[1]:at]) != string([]byte{opLocalSet, 0, opI32Const, 0}) {
				w.other = true
			}
		}
		last[1], last[0] = last[0], at
	}
	return append(out, d.b[done:]...)
}

// jump reads the rest of a jump that begins with the i32.const at an offset. It returns the depth of
// the block whose end is where a jump forward leads. Where it returns false, it has read no further.
func (w *walk) jump(d *decoder, at int) (depth uint64, ok bool) {
	if w.section < 0 || w.section >= w.sections {
		return 0, false
	}
	ahead := &decoder{b: d.b, at: at + 1}
	number := ahead.signed()
	if from := ahead.at; ahead.instruction() != opLocalSet || !isLocal0(ahead.b[from:ahead.at]) {
		return 0, false
	}
	if ahead.byte() != opBr {
		return 0, false
	}
	around := uint64(w.nested + w.sections - 1 - w.section) // blocks between the jump and the loop
	if ahead.unsigned() != around || ahead.err != nil || number < 0 {
		return 0, false
	}
	to := w.table[min(number, int64(len(w.table)-1))]
	if to <= w.section {
		w.back++
		return 0, false
	}
	w.direct++
	d.at = ahead.at
	return uint64(w.nested + to - w.section - 1), true
}

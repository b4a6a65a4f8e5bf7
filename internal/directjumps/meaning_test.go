package main

import (
	"fmt"
	"slices"
	"testing"
)

// instruction is one of a function. It is branches where it has labels.
type instruction struct {
	op     byte
	bytes  []byte
	number int64 // of an i32.const, and of the local that is set
	labels []int // the instruction that each leads to
}

// instructions returns those of a function. It knows labels only as the specification defines them:
// that of a block stands behind its end, that of a loop at its start.
func instructions(t *testing.T, body []byte) (list []instruction) {
	t.Helper()
	d := &decoder{b: body}
	for n := d.unsigned(); n > 0; n-- {
		d.unsigned()
		d.byte()
	}
	var open []int
	ends := map[int]int{} // of blocks
	for d.at < len(body) && d.err == nil {
		from := d.at
		op := d.instruction()
		list = append(list, instruction{op: op, bytes: body[from:d.at]})
		switch n := len(open); {
		case op == opBlock, op == opLoop, op == opIf:
			open = append(open, len(list)-1)
		case op == opEnd && n > 0:
			ends[open[n-1]], open = len(list)-1, open[:n-1]
		}
	}
	if d.err != nil {
		t.Fatal(d.err)
	}
	label := func(depth uint64) int {
		if depth >= uint64(len(open)) {
			return len(list)
		}
		at := open[len(open)-1-int(depth)]
		if list[at].op == opLoop {
			return at
		}
		return ends[at] + 1
	}
	for i := range list {
		x := &list[i]
		d := &decoder{b: x.bytes, at: 1}
		switch x.op {
		case opBlock, opLoop, opIf:
			open = append(open, i)
		case opEnd:
			open = open[:max(0, len(open)-1)]
		case opI32Const, opLocalSet:
			x.number = d.signed()
		case opBr, opBrIf:
			x.labels = []int{label(d.unsigned())}
		case opBrTable:
			for n := d.unsigned() + 1; n > 0; n-- {
				x.labels = append(x.labels, label(d.unsigned()))
			}
		}
	}
	return list
}

// meaning returns what a function does: its instructions, and for each branch where it leads. A jump
// by the table is the same there as a branch to where the table leads.
func meaning(t *testing.T, body []byte) (list []string) {
	t.Helper()
	all := instructions(t, body)
	table := slices.IndexFunc(all, func(x instruction) bool { return x.op == opBrTable })
	loop := -1 // that has the table
	for i := range max(0, table) {
		if all[i].op == opLoop {
			loop = i
		}
	}
	var items []instruction
	places := make([]int, len(all)+1) // in items
	for i := 0; i < len(all); i++ {
		x := all[i]
		places[i] = len(items)
		if loop >= 0 && i > table && i+2 < len(all) && x.op == opI32Const && all[i+1].op == opLocalSet &&
			all[i+1].number == 0 && all[i+2].op == opBr && all[i+2].labels[0] == loop {
			to := all[table].labels
			x = instruction{op: opBr, labels: []int{to[min(int(x.number), len(to)-1)]}}
			i += 2
		}
		items = append(items, x)
	}
	places[len(all)] = len(items)
	for _, x := range items {
		if x.labels == nil {
			list = append(list, fmt.Sprintf("%x", x.bytes))
			continue
		}
		text := fmt.Sprintf("%x to", x.op)
		for _, to := range x.labels {
			text += fmt.Sprintf(" %d", places[to])
		}
		list = append(list, text)
	}
	return list
}

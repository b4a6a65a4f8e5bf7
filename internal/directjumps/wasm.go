package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Instructions of WebAssembly, by their first byte.
// Source: WebAssembly Core Specification 2.0, 5.4
const (
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opFirstMemory  = 0x28
	opLastMemory   = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opLastNumeric  = 0xc4
	opFurther      = 0xfc // a number follows
)

// Instructions behind opFurther.
const (
	furtherLastTruncate = 7
	furtherMemoryCopy   = 10
	furtherMemoryFill   = 11
)

const sectionCode = 10

var errEnds = errors.New("the file ends in the middle")

// decoder reads a module, or a part of one. The first error stays.
type decoder struct {
	b   []byte
	at  int
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.at = len(d.b)
}

func (d *decoder) byte() byte {
	if d.at >= len(d.b) {
		d.fail(errEnds)
		return 0
	}
	d.at++
	return d.b[d.at-1]
}

func (d *decoder) skip(n uint64) {
	if n > uint64(len(d.b)-d.at) {
		d.fail(errEnds)
		return
	}
	d.at += int(n)
}

// part reads a length, and returns so many bytes.
func (d *decoder) part() []byte {
	n := d.unsigned()
	from := d.at
	d.skip(n)
	return d.b[from:d.at]
}

// unsigned reads a number in LEB128.
func (d *decoder) unsigned() uint64 {
	v, n := binary.Uvarint(d.b[d.at:])
	if n <= 0 {
		d.fail(errEnds)
		return 0
	}
	d.at += n
	return v
}

// signed reads a signed number in LEB128.
func (d *decoder) signed() (v int64) {
	for shift := 0; shift < 64; {
		x := d.byte()
		v |= int64(x&0x7f) << shift
		shift += 7
		if x&0x80 == 0 {
			if x&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
	d.fail(errors.New("a number is too long"))
	return 0
}

// instruction reads an instruction, and returns its first byte.
func (d *decoder) instruction() byte {
	op := d.byte()
	switch {
	case op == opBlock, op == opLoop, op == opIf, op == opI32Const, op == opI64Const:
		d.signed()
	case op == opBr, op == opBrIf, op == opCall, op >= opLocalGet && op <= opGlobalSet,
		op == opMemorySize, op == opMemoryGrow:
		d.unsigned()
	case op == opCallIndirect, op >= opFirstMemory && op <= opLastMemory:
		d.unsigned()
		d.unsigned()
	case op == opBrTable:
		for n := d.unsigned() + 1; n > 0 && d.err == nil; n-- {
			d.unsigned()
		}
	case op == opF32Const:
		d.skip(4)
	case op == opF64Const:
		d.skip(8)
	case op == opFurther:
		switch sub := d.unsigned(); {
		case sub <= furtherLastTruncate:
		case sub == furtherMemoryCopy:
			d.skip(2)
		case sub == furtherMemoryFill:
			d.skip(1)
		default:
			d.fail(fmt.Errorf("instruction 0xfc %d is not known", sub))
		}
	case op <= opNop, op == opElse, op == opEnd, op == opReturn, op == opDrop, op == opSelect,
		op > opF64Const && op <= opLastNumeric:
	default:
		d.fail(fmt.Errorf("instruction %#x is not known", op))
	}
	return op
}

// rewrite returns a module with direct jumps.
func rewrite(module []byte) ([]byte, jumps, error) {
	const header = 8 // the magic number and the version
	var all jumps
	d := &decoder{b: module}
	d.skip(header)
	out := append(make([]byte, 0, len(module)), module[:d.at]...)
	for d.err == nil && d.at < len(module) {
		id := d.byte()
		body := d.part()
		if id == sectionCode && d.err == nil {
			body = rewriteAll(body, &all, d)
		}
		out = append(binary.AppendUvarint(append(out, id), uint64(len(body))), body...)
	}
	return out, all, d.err
}

// rewriteAll rewrites the functions of a module.
func rewriteAll(section []byte, all *jumps, of *decoder) []byte {
	d := &decoder{b: section}
	n := d.unsigned()
	out := binary.AppendUvarint(make([]byte, 0, len(section)), n)
	for ; n > 0 && d.err == nil; n-- {
		body := d.part()
		if d.err == nil {
			body = all.rewrite(body, d)
		}
		out = append(binary.AppendUvarint(out, uint64(len(body))), body...)
	}
	if d.err != nil {
		of.fail(d.err)
	}
	return out
}

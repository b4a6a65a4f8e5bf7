package capture

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/ackscope/ackscope/machine"
)

// The block format (draft-ietf-opsawg-pcapng). Every block:
//
//	0  type          Enhanced Packet Block (6):   8  interface   12 time high  16 time low
//	4  total length                              20  captured    24 on the wire  28 data, options
//	8  body          Packet Block (2):            8  interface, drops (16 bits each), then the same
//	.. total length  Simple Packet Block (3):     8  on the wire  12 data
//
// A Section Header Block sets the byte order. Each section numbers its
// interfaces from 0. Frame.Interface numbers them through all sections of a
// file.
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockPacket     = 2
	blockSimple     = 3
	blockStatistics = 5
	blockEnhanced   = 6

	byteOrderMagic = 0x1a2b3c4d

	// Blocks of other events than packets. They yield no frames, but they take
	// frame numbers, because Wireshark numbers them.
	blockJournal        = 9
	blockSystemCall     = 0x204
	blockSystemCall2    = 0x216
	blockCustom         = 0x0bad
	blockCustomNoCopies = 0x40000bad

	blockOverhead = 12 // type and both lengths
	enhancedHead  = 28
	simpleHead    = 12

	maxOptions    = 1 << 20  // bytes of options that a packet block may carry
	maxBlock      = 64 << 20 // of a block that ackscope skips
	maxInterfaces = 1 << 17  // of one file; also the limit of its sections
)

// section is the place of a section and how to read it.
type section struct {
	offset int64
	first  int // index of its interface 0 in the file
	number int // of the section, from 0
	big    bool
	head   Section
}

// ngReader reads the blocks of one pcapng file.
type ngReader struct {
	section    section
	interfaces int // of the current section so far
	last       machine.Instant
}

func openPcapng(f *file) (*ngReader, error) {
	r := &ngReader{}
	if err := r.readSection(f); err != nil {
		return nil, f.unreadable(err)
	}
	return r, nil
}

func (s *section) u16(b []byte) uint16 {
	v := binary.LittleEndian.Uint16(b)
	if s.big {
		v = bits.ReverseBytes16(v)
	}
	return v
}

func (s *section) u32(b []byte) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if s.big {
		v = bits.ReverseBytes32(v)
	}
	return v
}

// nextCommon reads the block that makes up nearly all of a capture: an Enhanced
// Packet Block without options, little-endian, whole in the buffer. For
// everything else it returns false, and fr is then of no use.
func (r *ngReader) nextCommon(f *file, fr *Frame) bool {
	s := f.stream
	b := s.buf[s.r:s.w]
	if len(b) < enhancedHead+4 || r.section.big || binary.LittleEndian.Uint32(b) != blockEnhanced {
		return false
	}
	total, captured := binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[20:])
	n, end := int(total), enhancedHead+int(captured)
	index := r.section.first + int(binary.LittleEndian.Uint32(b[8:]))
	if n > len(b) || n != enhancedHead+padded(captured)+4 || index >= f.seen ||
		binary.LittleEndian.Uint32(b[n-4:]) != total {
		return false
	}
	in := &f.interfaces[index]
	if captured > in.limit {
		return false
	}
	fr.At = in.Resolution.instant(uint64(binary.LittleEndian.Uint32(b[12:]))<<32|
		uint64(binary.LittleEndian.Uint32(b[16:])), in.OffsetSeconds)
	fr.Offset = s.base + int64(s.r)
	fr.Interface, fr.LinkType = index, in.LinkType
	fr.Length, fr.Data = int(binary.LittleEndian.Uint32(b[24:])), b[enhancedHead:end:end]
	fr.Options, fr.BigEndian, fr.Untimed = nil, false, false
	r.last = fr.At
	s.r += n
	return true
}

// next implements recordReader.
func (r *ngReader) next(f *file, fr *Frame) error {
	if r.nextCommon(f, fr) {
		return nil
	}
	s := f.stream
	for {
		if s.w-s.r < blockOverhead && !s.need(blockOverhead) {
			if s.have() == 0 && s.err != nil {
				return f.endOrFailure("block")
			}
			return f.cut("the head of a block", blockOverhead)
		}
		h := s.buf[s.r:s.w]
		kind, total := r.section.u32(h), r.section.u32(h[4:])
		switch kind {
		case blockEnhanced, blockPacket, blockSimple:
			return r.nextPacket(f, fr, kind, total)
		case blockSection:
			if err := r.readSection(f); err != nil {
				return err
			}
		case blockInterface, blockStatistics:
			if err := r.readMetadata(f, kind, total); err != nil {
				return err
			}
		case blockNames:
			if err := r.readNames(f, total); err != nil {
				return err
			}
		default:
			if err := r.skipBlock(f, "block", total); err != nil {
				return err
			}
			switch kind {
			case blockJournal, blockSystemCall, blockSystemCall2, blockCustom, blockCustomNoCopies:
				f.number++
			}
		}
	}
}

// padded rounds a length up to the four bytes that pcapng aligns everything to.
func padded(n uint32) int { return int((int64(n) + 3) &^ 3) }

func (r *ngReader) nextPacket(f *file, fr *Frame, kind, total uint32) error {
	s := f.stream
	head := enhancedHead
	if kind == blockSimple {
		head = simpleHead
	}
	if total < uint32(head+4) {
		return f.damage("packet block", fmt.Sprintf("a block length of at least %d", head+4), fmt.Sprint(total))
	}
	if s.w-s.r < head && !s.need(head) {
		return f.cut("packet block", int64(padded(total)))
	}
	captured, expected, found := r.head(f.interfaces[:f.seen], s.buf[s.r:s.w], fr, kind, total)
	if expected != "" {
		return f.damage("packet block", expected, found)
	}
	n := padded(total)
	if s.w-s.r < n && !s.need(n) {
		return f.cut("packet block", int64(n))
	}
	b := s.buf[s.r : s.r+n : s.r+n]
	if trailer := r.section.u32(b[n-4:]); trailer != total {
		return f.damage("packet block", fmt.Sprintf("the length %d again at the block's end", total), fmt.Sprint(trailer))
	}
	fr.Offset = s.base + int64(s.r)
	r.body(b, fr, head, captured)
	if fr.Untimed {
		fr.At = r.last
	}
	r.last = fr.At
	s.r += n
	return nil
}

// head reads the fixed part of a packet block into fr. If a value is
// impossible, expected and found describe it.
func (r *ngReader) head(interfaces []Interface, h []byte, fr *Frame, kind, total uint32) (captured uint32, expected,
	found string,
) {
	o := &r.section
	var id uint32
	switch kind {
	case blockEnhanced:
		id = o.u32(h[8:])
	case blockPacket:
		id = uint32(o.u16(h[8:]))
	}
	index := int64(o.first) + int64(id)
	if index >= int64(len(interfaces)) {
		return 0, fmt.Sprintf("an interface below %d, as the section describes", len(interfaces)-o.first), fmt.Sprint(id)
	}
	in := &interfaces[index]
	head, room := uint32(enhancedHead), total-enhancedHead-4
	if kind == blockSimple {
		head, room = simpleHead, total-simpleHead-4
		length := o.u32(h[8:])
		captured = min(length, room)
		if in.SnapLength != 0 {
			captured = min(captured, in.SnapLength)
		}
		fr.Length, fr.Untimed = int(length), true
	} else {
		captured = o.u32(h[20:])
		fr.Length, fr.Untimed = int(o.u32(h[24:])), false
		fr.At = in.Resolution.instant(uint64(o.u32(h[12:]))<<32|uint64(o.u32(h[16:])), in.OffsetSeconds)
	}
	if captured > in.limit {
		return 0, fmt.Sprintf("a captured length of at most %d", in.limit), fmt.Sprint(captured)
	}
	if captured > room {
		return 0, fmt.Sprintf("a block length of at least %d for its %d captured bytes", captured+head+4, captured),
			fmt.Sprint(total)
	}
	if room-captured > maxOptions {
		return 0, fmt.Sprintf("a block length of at most %d for its %d captured bytes", captured+head+4+maxOptions, captured),
			fmt.Sprint(total)
	}
	fr.Interface, fr.Classic = int(index), false
	fr.LinkType = in.LinkType
	fr.BigEndian = o.big
	return captured, "", ""
}

// body sets the data and options of fr to those of the block.
func (r *ngReader) body(b []byte, fr *Frame, head int, captured uint32) {
	end := head + int(captured)
	fr.Data = b[head:end:end]
	fr.Options = nil
	if options := head + padded(captured); head == enhancedHead && options < len(b)-4 {
		fr.Options = b[options : len(b)-4 : len(b)-4]
	}
}

func (r *ngReader) readSection(f *file) error {
	const what = "section header block"
	s := f.stream
	if !s.need(blockOverhead) {
		return f.cut(what, 28)
	}
	h := s.buf[s.r:s.w]
	sec := section{offset: s.offset(), first: f.seen}
	switch magic := binary.LittleEndian.Uint32(h[8:]); magic {
	case byteOrderMagic:
	case bits.ReverseBytes32(byteOrderMagic):
		sec.big = true
	default:
		return f.damage(what, "the byte order magic 1a 2b 3c 4d either way round", fmt.Sprintf("% x", h[8:12]))
	}
	total := sec.u32(h[4:])
	if total < 28 || total > maxBlock {
		return f.damage(what, fmt.Sprintf("a block length of 28 to %d", maxBlock), fmt.Sprint(total))
	}
	if !s.need(16) {
		return f.cut(what, int64(padded(total)))
	}
	h = s.buf[s.r:s.w]
	if major := sec.u16(h[12:]); major != 1 {
		return f.damage(what, "pcapng version 1.x", fmt.Sprintf("%d.%d", major, sec.u16(h[14:])))
	}
	if f.opened == maxInterfaces {
		return f.damage(what, fmt.Sprintf("at most %d sections", maxInterfaces), "one more")
	}
	sec.number = f.opened
	r.section, r.interfaces = sec, 0
	if total > maxOptions || !f.keeps(int(total)) {
		f.addSection(sec)
		return r.skipBlock(f, what, total)
	}
	b, err := r.block(f, what, total)
	if err != nil {
		return err
	}
	sec.head = parseSection(&sec, b[24:len(b)-4])
	f.addSection(sec)
	return nil
}

// skipBlock skips a block. It checks that the block's end repeats its length.
func (r *ngReader) skipBlock(f *file, what string, total uint32) error {
	s := f.stream
	if total < blockOverhead || total > maxBlock {
		return f.damage(what, fmt.Sprintf("a block length of %d to %d", blockOverhead, maxBlock), fmt.Sprint(total))
	}
	n := int64(padded(total))
	begin := s.offset()
	if s.skip(n-4) < n-4 || !s.need(4) {
		return f.cutAt(begin, what, n-(s.offset()-begin)-int64(s.have()))
	}
	if trailer := r.section.u32(s.buf[s.r:]); trailer != total {
		return f.damageAt(begin, what, fmt.Sprintf("the length %d again at the block's end", total), fmt.Sprint(trailer))
	}
	s.r += 4
	return nil
}

// readMetadata reads an interface description or statistics block.
func (r *ngReader) readMetadata(f *file, kind, total uint32) error {
	what, least := "interface description block", uint32(20)
	if kind == blockStatistics {
		what, least = "interface statistics block", 24
	}
	if total < least || total > maxOptions {
		return f.damage(what, fmt.Sprintf("a block length of %d to %d", least, maxOptions), fmt.Sprint(total))
	}
	if kind == blockInterface && r.section.first+r.interfaces >= maxInterfaces {
		return f.damage(what, fmt.Sprintf("at most %d interfaces", maxInterfaces), "one more")
	}
	b, err := r.block(f, what, total)
	if err != nil {
		return err
	}
	if kind == blockInterface {
		in := parseInterface(&r.section, b[8:len(b)-4])
		in.limit, in.Section = f.limit(in.SnapLength), r.section.number
		if !f.keeps(int(total)) {
			in.Other = nil
		}
		f.addInterface(in)
		r.interfaces++
	} else if id := r.section.u32(b[8:]); f.readHost(&r.section, b[20:len(b)-4]) {
		return nil
	} else if int64(id) < int64(r.interfaces) {
		f.setStatistics(r.section.first+int(id), parseStatistics(&r.section, b[20:len(b)-4]))
	}
	return nil
}

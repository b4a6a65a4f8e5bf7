package capture

import (
	"encoding/binary"
	"fmt"
)

// Section is what a section of a pcapng file says of itself: the machine and
// the program that wrote it. For a classic pcap file all fields are empty.
type Section struct {
	Hardware    string
	OS          string
	Application string
	Comments    []string
}

// InterfaceOption is an option of an interface that ackscope does not
// interpret. Numbers in Value are little-endian.
type InterfaceOption struct {
	Code  uint16
	Value []byte
}

const (
	blockNames = 4

	sectionHardware    = 2
	sectionOS          = 3
	sectionApplication = 4

	// maxDescribed bounds the bytes that are kept of a file's sections, of its
	// interfaces' other options and of its names. Later ones are skipped.
	maxDescribed = 4 << 20
)

// keeps adds n bytes of descriptions, and reports whether the sum is within the
// limit.
func (f *file) keeps(n int) bool {
	f.described += n
	return f.described <= maxDescribed
}

// parseSection reads the options of a section header block.
func parseSection(o *section, b []byte) (s Section) {
	for code, value := range options(b, o.big) {
		switch code {
		case optionComment:
			s.Comments = append(s.Comments, string(value))
		case sectionHardware:
			s.Hardware = string(value)
		case sectionOS:
			s.OS = string(value)
		case sectionApplication:
			s.Application = string(value)
		}
	}
	return s
}

// portable returns an option of an interface with its numbers converted to
// little-endian.
func portable(o *section, code uint16, value []byte) InterfaceOption {
	value = append([]byte(nil), value...)
	const speed, zone, sendSpeed, receiveSpeed = 8, 10, 16, 17
	if o.big {
		switch {
		case (code == speed || code == sendSpeed || code == receiveSpeed) && len(value) == 8:
			binary.LittleEndian.PutUint64(value, binary.BigEndian.Uint64(value))
		case code == zone && len(value) == 4:
			binary.LittleEndian.PutUint32(value, binary.BigEndian.Uint32(value))
		}
	}
	return InterfaceOption{code, value}
}

// appendNames appends the records of a name resolution block, little-endian and
// without the end record.
func appendNames(to []byte, o *section, b []byte) []byte {
	for len(b) >= 4 {
		kind, n := o.u16(b), int(o.u16(b[2:]))
		whole := padded(uint32(n))
		if kind == 0 || 4+whole > len(b) {
			break
		}
		to = binary.LittleEndian.AppendUint16(to, kind)
		to = binary.LittleEndian.AppendUint16(to, uint16(n))
		to = append(to, b[4:4+whole]...)
		b = b[4+whole:]
	}
	return to
}

// readNames stores the records of a name resolution block.
func (r *ngReader) readNames(f *file, total uint32) error {
	const what = "name resolution block"
	if total < blockOverhead || total > maxOptions || !f.keeps(int(total)) {
		return r.skipBlock(f, what, total)
	}
	b, err := r.block(f, what, total)
	if err != nil {
		return err
	}
	records := appendNames(nil, &r.section, b[8:len(b)-4])
	f.mu.Lock()
	if f.namesSeen == len(f.names) {
		f.names = append(f.names, records...)
	}
	f.mu.Unlock()
	f.namesSeen += len(records)
	return nil
}

// block returns a block that fits the buffer, and moves the stream past it.
func (r *ngReader) block(f *file, what string, total uint32) ([]byte, error) {
	s, n := f.stream, padded(total)
	if !s.need(n) {
		return nil, f.cut(what, int64(n))
	}
	b := s.buf[s.r : s.r+n]
	if trailer := r.section.u32(b[n-4:]); trailer != total {
		return nil, f.damageAt(s.offset(), what, fmt.Sprintf("the length %d again at the block's end", total),
			fmt.Sprint(trailer))
	}
	s.r += n
	return b, nil
}

// Sections returns the sections that have been read so far of the i-th file.
// Those of a classic file are empty.
func (in *Input) Sections(i int) []Section {
	f := in.files[i]
	f.mu.RLock()
	defer f.mu.RUnlock()
	list := make([]Section, len(f.sections))
	for i := range list {
		list[i] = f.sections[i].head
	}
	return list
}

// Names returns the name records read so far of the i-th file, from byte from
// on. Writer.WriteNames accepts them.
func (in *Input) Names(i, from int) []byte {
	f := in.files[i]
	f.mu.RLock()
	defer f.mu.RUnlock()
	if from >= len(f.names) {
		return nil
	}
	return f.names[from:len(f.names):len(f.names)]
}

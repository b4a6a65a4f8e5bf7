package capture

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/ackscope/ackscope/machine"
)

// The classic format (draft-ietf-opsawg-pcap):
//
//	file header, 24 bytes                     record header, 16 bytes
//	 0  magic: byte order and time unit        0  seconds
//	 4  version 2.4                            4  micro- or nanoseconds
//	 8  time zone, accuracy: both 0            8  captured length
//	16  snap length                           12  length on the wire
//	20  link type, FCS length in high bits    (16  24-byte form: interface, protocol, type)
const (
	pcapHeader         = 24
	pcapRecord         = 16
	pcapRecordModified = 24

	magicMicro    = 0xa1b2c3d4
	magicNano     = 0xa1b23c4d
	magicModified = 0xa1b2cd34 // Kuznetsov's format of old Linux systems: longer record headers
)

// pcapReader reads the records of one classic file. It keeps no pointer to the
// stream's bytes, so a copy of it can read records at random.
type pcapReader struct {
	big         bool
	swapped     bool   // versions before 2.3 have the two lengths in the other order
	eitherOrder bool   // version 2.3 has them in either order
	header      int    // bytes of a record's header
	unit        uint32 // nanoseconds in a tick
	limit       uint32 // longest captured length that is accepted
	linkType    uint32
}

func pcapMagic(b []byte) (magic uint32, big, ok bool) {
	magic = binary.LittleEndian.Uint32(b)
	switch magic {
	case magicMicro, magicNano, magicModified:
		return magic, false, true
	}
	magic = bits.ReverseBytes32(magic)
	switch magic {
	case magicMicro, magicNano, magicModified:
		return magic, true, true
	}
	return 0, false, false
}

// openPcap reads the file header.
func openPcap(f *file) (*pcapReader, *FormatError) {
	s := f.stream
	if !s.need(pcapHeader) {
		return nil, &FormatError{
			File: f.name, Offset: s.offset(), Expected: "a pcap file header of 24 bytes",
			Found: fmt.Sprintf("the end after %d", s.have()), Err: f.failure(),
		}
	}
	h := s.buf[s.r : s.r+pcapHeader]
	magic, big, _ := pcapMagic(h)
	r := &pcapReader{big: big, header: pcapRecord, unit: 1000}
	switch magic {
	case magicNano:
		r.unit = 1
	case magicModified:
		r.header = pcapRecordModified
	}
	major, minor := r.u16(h[4:]), r.u16(h[6:])
	if major != 2 {
		return nil, &FormatError{
			File: f.name, Offset: 4, Expected: "pcap version 2.x",
			Found: fmt.Sprintf("%d.%d", major, minor),
		}
	}
	r.swapped, r.eitherOrder = minor < 3, minor == 3
	snap := r.u32(h[16:])
	r.limit = f.limit(snap)
	r.linkType = r.u32(h[20:])
	const fcsPresent = 1 << 26
	if r.linkType&fcsPresent != 0 {
		r.linkType &= fcsPresent - 1 // the bits above hold the length of the frame check sequence
	}
	resolution := Microseconds
	if r.unit == 1 {
		resolution = Nanoseconds
	}
	f.addInterface(Interface{LinkType: r.linkType, SnapLength: snap, Resolution: resolution})
	s.r += pcapHeader
	return r, nil
}

func (r *pcapReader) u16(b []byte) uint16 {
	v := binary.LittleEndian.Uint16(b)
	if r.big {
		v = bits.ReverseBytes16(v)
	}
	return v
}

func (r *pcapReader) u32(b []byte) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if r.big {
		v = bits.ReverseBytes32(v)
	}
	return v
}

// next implements recordReader.
func (r *pcapReader) next(f *file, fr *Frame) error {
	s := f.stream
	b := s.buf[s.r:s.w]
	if len(b) < r.header {
		if !s.need(r.header) {
			if s.have() == 0 && s.err != nil {
				return f.endOrFailure("packet record")
			}
			return f.cut("the header of packet record", int64(r.header))
		}
		b = s.buf[s.r:s.w]
	}
	captured, ok := r.head(b, fr)
	if !ok {
		return f.damage("packet record", fmt.Sprintf("a captured length of at most %d", r.limit), fmt.Sprint(captured))
	}
	n := r.header + int(captured)
	if len(b) < n {
		if !s.need(n) {
			return f.cut("packet record", int64(n))
		}
		b = s.buf[s.r:s.w]
	}
	fr.Offset = s.base + int64(s.r)
	fr.Data = b[r.header:n:n]
	s.r += n
	return nil
}

// head reads a record's header. It returns false if the captured length is
// impossible.
func (r *pcapReader) head(h []byte, fr *Frame) (captured uint32, ok bool) {
	_ = h[15]
	seconds, ticks := r.u32(h), r.u32(h[4:])
	captured, length := r.u32(h[8:]), r.u32(h[12:])
	if r.swapped || r.eitherOrder && captured > length {
		captured, length = length, captured
	}
	fr.At = machine.Instant(int64(seconds)*1e9 + int64(ticks)*int64(r.unit))
	fr.Interface, fr.Classic = 0, true
	fr.LinkType = r.linkType
	fr.Length = int(length)
	fr.Options = nil
	fr.Untimed = false
	return captured, captured <= r.limit
}

package capture

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// Interface is what a capture file says of one interface of the capture. A
// classic pcap file has one interface without a name; only the numbers are
// known.
type Interface struct {
	Name          string
	Description   string
	Filter        string // the capture filter that was in force
	OS            string
	Comments      []string
	LinkType      uint32 // LINKTYPE_ number
	SnapLength    uint32 // bytes kept of each packet; 0 for no limit
	Resolution    Resolution
	OffsetSeconds int64       // added to every time stamp
	Statistics    *Statistics // nil if the file has none
	Section       int         // of the file, from 0
	Other         []InterfaceOption

	limit uint32 // longest captured length that is accepted
}

// Statistics are the counts that the capturing system kept of an interface.
// Known is the set of counts that the file contains.
type Statistics struct {
	Received       uint64 // by the interface
	Dropped        uint64 // by the interface, for lack of resources
	FilterAccepted uint64
	OSDropped      uint64 // by the operating system
	Delivered      uint64 // to the capturing program
	Known          StatisticsMask
}

// StatisticsMask is a set of counts.
type StatisticsMask uint8

// The counts of Statistics.
const (
	KnownReceived StatisticsMask = 1 << iota
	KnownDropped
	KnownFilterAccepted
	KnownOSDropped
	KnownDelivered
)

// Option codes. Those of packets, interfaces and statistics overlap.
const (
	optionEnd     = 0
	optionComment = 1

	interfaceName        = 2
	interfaceDescription = 3
	interfaceResolution  = 9
	interfaceFilter      = 11
	interfaceOS          = 12
	interfaceOffset      = 14

	packetFlags     = 2
	packetDropCount = 4

	statisticsReceived       = 4
	statisticsDropped        = 5
	statisticsFilterAccepted = 6
	statisticsOSDropped      = 7
	statisticsDelivered      = 8
)

// options iterates over a list of pcapng options. It stops where the list is
// cut or a length does not fit.
func options(b []byte, big bool) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		o := section{big: big}
		for len(b) >= 4 {
			code, n := o.u16(b), int(o.u16(b[2:]))
			b = b[4:]
			if code == optionEnd || n > len(b) || !yield(code, b[:n]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}

// Comments returns the comments that the file carries for this frame.
func (f *Frame) Comments() iter.Seq[string] {
	return func(yield func(string) bool) {
		for code, value := range options(f.Options, f.BigEndian) {
			if code == optionComment && !yield(string(value)) {
				return
			}
		}
	}
}

// KeepPassing drops the frame's options, except those that say how it passed
// the tap: direction, kind of reception, and packets lost before it. It clears
// the other bits of the flags, and caps the count at MostCounted.
func (f *Frame) KeepPassing() {
	const passing = 0x1f // bits of the flags: direction, kind of reception (draft-ietf-opsawg-pcapng, 4.3.1)
	o := section{big: f.BigEndian}
	var kept []byte
	for code, value := range options(f.Options, f.BigEndian) {
		switch {
		case code == packetFlags && len(value) == 4:
			kept = binary.LittleEndian.AppendUint32(append(kept, packetFlags, 0, 4, 0), o.u32(value)&passing)
		case code == packetDropCount && len(value) == 8:
			kept = binary.LittleEndian.AppendUint64(append(kept, packetDropCount, 0, 8, 0), min(o.u64(value), MostCounted))
		}
	}
	f.Options, f.BigEndian = kept, false
}

// MostCounted is the largest count of packets that KeepPassing and
// Statistics.Bounded keep. No capture counts to 2^48 packets, so a larger
// number could hide any data.
const MostCounted = 1<<48 - 1

// Bounded returns a copy of the counts, each at most MostCounted.
func (s *Statistics) Bounded() *Statistics {
	if s == nil {
		return nil
	}
	b := *s
	for _, n := range []*uint64{&b.Received, &b.Dropped, &b.FilterAccepted, &b.OSDropped, &b.Delivered} {
		*n = min(*n, MostCounted)
	}
	return &b
}

// direction returns the direction in the frame's flags option.
func (f *Frame) direction() Direction {
	o := section{big: f.BigEndian}
	for code, value := range options(f.Options, f.BigEndian) {
		if code == packetFlags && len(value) == 4 {
			return Direction(o.u32(value)&3) % 3 // 0 no information, 1 inbound, 2 outbound
		}
	}
	return NoDirection
}

// parseInterface reads the body of an interface description block.
func parseInterface(o *section, b []byte) Interface {
	in := Interface{LinkType: uint32(o.u16(b)), SnapLength: o.u32(b[4:]), Resolution: Microseconds}
	for code, value := range options(b[8:], o.big) {
		switch code {
		case optionComment:
			in.Comments = append(in.Comments, string(value))
		case interfaceName:
			in.Name = string(value)
		case interfaceDescription:
			in.Description = string(value)
		case interfaceResolution:
			if len(value) == 1 {
				in.Resolution = Resolution(value[0])
			}
		case interfaceFilter:
			if len(value) > 1 && value[0] == 0 { // 0: text that libpcap compiles; other codes are byte code
				in.Filter = string(value[1:])
			}
		case interfaceOS:
			in.OS = string(value)
		case interfaceOffset:
			if len(value) == 8 {
				in.OffsetSeconds = int64(o.u64(value))
			}
		default:
			in.Other = append(in.Other, portable(o, code, value))
		}
	}
	return in
}

// parseStatistics reads the options of an interface statistics block.
func parseStatistics(o *section, b []byte) *Statistics {
	st := &Statistics{}
	for code, value := range options(b, o.big) {
		if len(value) != 8 {
			continue
		}
		n := o.u64(value)
		switch code {
		case statisticsReceived:
			st.Received, st.Known = n, st.Known|KnownReceived
		case statisticsDropped:
			st.Dropped, st.Known = n, st.Known|KnownDropped
		case statisticsFilterAccepted:
			st.FilterAccepted, st.Known = n, st.Known|KnownFilterAccepted
		case statisticsOSDropped:
			st.OSDropped, st.Known = n, st.Known|KnownOSDropped
		case statisticsDelivered:
			st.Delivered, st.Known = n, st.Known|KnownDelivered
		}
	}
	return st
}

func (s *section) u64(b []byte) uint64 {
	lo, hi := uint64(s.u32(b)), uint64(s.u32(b[4:]))
	if s.big {
		return bits.RotateLeft64(hi<<32|lo, 32)
	}
	return hi<<32 | lo
}

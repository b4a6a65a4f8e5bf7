package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// WriterOptions are what a written capture says of itself, and when it is
// flushed. The zero value says nothing and flushes when the buffer is full.
type WriterOptions struct {
	Application string
	OS          string
	Hardware    string
	Comments    []string
	// FlushEvery is an interval in capture time. The writer flushes before the
	// first frame that is later than the last flush by this much. Flush can be
	// called in addition.
	FlushEvery time.Duration
}

// Writer writes a pcapng capture in little-endian sections. It is not safe for
// concurrent use. After an error every further call returns that error.
type Writer struct {
	out        *bufio.Writer
	block      []byte
	written    int64
	ticks      []uint64 // nanoseconds in a tick of each interface's clock
	statistics []pendingStatistics
	every      time.Duration
	flushed    machine.Instant
	last       machine.Instant
	started    bool
	closed     bool
	err        error
}

type pendingStatistics struct {
	id int
	st Statistics
}

var errWriterClosed = errors.New("capture writer is closed")

// NewWriter starts a capture on w. The caller closes w.
func NewWriter(w io.Writer, o WriterOptions) (*Writer, error) {
	nw := &Writer{out: bufio.NewWriterSize(w, 64<<10), every: o.FlushEvery}
	nw.section(Section{Hardware: o.Hardware, OS: o.OS, Application: o.Application, Comments: o.Comments})
	return nw, nw.err
}

// BeginSection ends the current section and starts another one. The new section
// numbers its interfaces from 0.
func (w *Writer) BeginSection(s Section) error {
	if err := w.ready(); err != nil {
		return err
	}
	w.counts()
	w.ticks, w.statistics = w.ticks[:0], w.statistics[:0]
	w.section(s)
	return w.err
}

func (w *Writer) section(s Section) {
	w.begin(blockSection)
	w.u32(byteOrderMagic)
	w.u16(1) // version 1.0
	w.u16(0)
	w.u64(math.MaxUint64) // section length: not specified
	for _, comment := range s.Comments {
		w.text(optionComment, comment)
	}
	w.text(sectionHardware, s.Hardware)
	w.text(sectionOS, s.OS)
	w.text(sectionApplication, s.Application)
	w.endOptions(w.block[24:])
	w.finish()
}

// WriteNames writes names of addresses, in the form that Input.Names returns.
func (w *Writer) WriteNames(records []byte) error {
	if err := w.ready(); err != nil || len(records) == 0 {
		return err
	}
	w.begin(blockNames)
	w.block = append(w.block, records...)
	w.u32(0) // the end record
	w.finish()
	return w.err
}

// AddInterface describes an interface and returns its id: 0, 1, ... Frames name
// the interface by this id. Times are written in its resolution, or in
// nanoseconds if the writer does not support that resolution. The offset and
// the statistics of in are not used.
func (w *Writer) AddInterface(in Interface) (id int, err error) {
	if in.LinkType > math.MaxUint16 {
		return 0, fmt.Errorf("pcapng interface: expected a link type below 65536, found %d", in.LinkType)
	}
	if err := w.ready(); err != nil {
		return 0, err
	}
	w.begin(blockInterface)
	w.u16(uint16(in.LinkType))
	w.u16(0)
	w.u32(in.SnapLength)
	for _, comment := range in.Comments {
		w.text(optionComment, comment)
	}
	w.text(interfaceName, in.Name)
	w.text(interfaceDescription, in.Description)
	resolution := in.Resolution
	if resolution == 0 || resolution > Nanoseconds {
		resolution = Nanoseconds
	}
	w.option(interfaceResolution, []byte{byte(resolution)})
	if in.Filter != "" {
		w.text(interfaceFilter, "\x00"+in.Filter)
	}
	w.text(interfaceOS, in.OS)
	for _, x := range in.Other {
		w.option(x.Code, x.Value)
	}
	w.endOptions(w.block[16:])
	w.finish()
	w.ticks = append(w.ticks, powersOf10[Nanoseconds-resolution])
	return len(w.ticks) - 1, w.err
}

// WriteFrame writes a frame: its time, lengths, data and options. f.Interface
// is the id of an interface that was added here. The comments follow those that
// f already has.
func (w *Writer) WriteFrame(f *Frame, comments ...string) error {
	if err := w.ready(); err != nil {
		return err
	}
	if f.Interface < 0 || f.Interface >= len(w.ticks) {
		return fmt.Errorf("pcapng frame: expected one of the %d interfaces added, found %d", len(w.ticks), f.Interface)
	}
	if len(f.Data) > hardMaxRecord {
		return fmt.Errorf("pcapng frame: expected at most %d bytes, found %d", hardMaxRecord, len(f.Data))
	}
	if w.every > 0 {
		if !w.started {
			w.started, w.flushed = true, f.At
		} else if f.At.Sub(w.flushed) >= w.every {
			w.flushed = f.At
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	w.last = max(w.last, f.At)
	at := uint64(max(f.At, 0)) / w.ticks[f.Interface]
	w.begin(blockEnhanced)
	w.u32(uint32(f.Interface))
	w.u32(uint32(at >> 32))
	w.u32(uint32(at))
	w.u32(uint32(len(f.Data)))
	w.u32(uint32(min(int64(max(f.Length, 0)), math.MaxUint32)))
	w.block = append(w.block, f.Data...)
	w.pad()
	begin := len(w.block)
	for code, value := range options(f.Options, f.BigEndian) {
		w.copyOption(code, value, f.BigEndian)
	}
	for _, comment := range comments {
		w.text(optionComment, comment)
	}
	w.endOptions(w.block[begin:])
	w.finish()
	return w.err
}

// copyOption writes a packet's option, with its numbers converted to
// little-endian.
func (w *Writer) copyOption(code uint16, value []byte, big bool) {
	if big {
		switch {
		case (code == packetFlags || code == 6) && len(value) == 4: // flags, queue
			value = binary.LittleEndian.AppendUint32(nil, binary.BigEndian.Uint32(value))
		case (code == 4 || code == 5) && len(value) == 8: // drop count, packet id
			value = binary.LittleEndian.AppendUint64(nil, binary.BigEndian.Uint64(value))
		}
	}
	w.option(code, value)
}

// SetStatistics sets the counts of an interface that Close writes.
func (w *Writer) SetStatistics(id int, st Statistics) {
	for i := range w.statistics {
		if w.statistics[i].id == id {
			w.statistics[i].st = st
			return
		}
	}
	w.statistics = append(w.statistics, pendingStatistics{id, st})
}

// Flush writes everything so far to the underlying writer.
func (w *Writer) Flush() error {
	if w.err == nil {
		w.err = w.out.Flush()
	}
	return w.err
}

// Close writes the statistics, at the time of the last frame, and flushes.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	if err := w.ready(); err != nil {
		return err
	}
	w.closed = true
	w.counts()
	return w.Flush()
}

// counts writes the statistics of the current section.
func (w *Writer) counts() {
	for _, s := range w.statistics {
		if s.id < 0 || s.id >= len(w.ticks) {
			continue
		}
		at := uint64(max(w.last, 0)) / w.ticks[s.id]
		w.begin(blockStatistics)
		w.u32(uint32(s.id))
		w.u32(uint32(at >> 32))
		w.u32(uint32(at))
		for _, c := range []struct {
			known StatisticsMask
			code  uint16
			n     uint64
		}{
			{KnownReceived, statisticsReceived, s.st.Received},
			{KnownDropped, statisticsDropped, s.st.Dropped},
			{KnownFilterAccepted, statisticsFilterAccepted, s.st.FilterAccepted},
			{KnownOSDropped, statisticsOSDropped, s.st.OSDropped},
			{KnownDelivered, statisticsDelivered, s.st.Delivered},
		} {
			if s.st.Known&c.known != 0 {
				w.option(c.code, binary.LittleEndian.AppendUint64(nil, c.n))
			}
		}
		w.endOptions(w.block[20:])
		w.finish()
	}
}

func (w *Writer) ready() error {
	if w.closed {
		return errWriterClosed
	}
	return w.err
}

func (w *Writer) u16(v uint16) { w.block = binary.LittleEndian.AppendUint16(w.block, v) }
func (w *Writer) u32(v uint32) { w.block = binary.LittleEndian.AppendUint32(w.block, v) }
func (w *Writer) u64(v uint64) { w.block = binary.LittleEndian.AppendUint64(w.block, v) }

func (w *Writer) pad() {
	for len(w.block)%4 != 0 {
		w.block = append(w.block, 0)
	}
}

func (w *Writer) begin(kind uint32) {
	w.block = w.block[:0]
	w.u32(kind)
	w.u32(0)
}

func (w *Writer) text(code uint16, s string) {
	if s == "" {
		return
	}
	w.u16(code)
	s = s[:min(len(s), math.MaxUint16)]
	w.u16(uint16(len(s)))
	w.block = append(w.block, s...)
	w.pad()
}

func (w *Writer) option(code uint16, value []byte) {
	value = value[:min(len(value), math.MaxUint16)]
	w.u16(code)
	w.u16(uint16(len(value)))
	w.block = append(w.block, value...)
	w.pad()
}

// endOptions ends a list of options. An empty list needs no end.
func (w *Writer) endOptions(list []byte) {
	if len(list) > 0 {
		w.u32(optionEnd)
	}
}

func (w *Writer) finish() {
	total := uint32(len(w.block) + 4)
	w.u32(total)
	binary.LittleEndian.PutUint32(w.block[4:], total)
	if w.err == nil {
		_, w.err = w.out.Write(w.block)
		w.written += int64(len(w.block))
	}
}

// Written returns the size of the capture so far in bytes, with the bytes that
// are not flushed yet.
func (w *Writer) Written() int64 { return w.written }

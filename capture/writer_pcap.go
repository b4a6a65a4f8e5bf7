package capture

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// ClassicWriter writes a classic, little-endian pcap file. It is not safe for
// concurrent use. After an error every further call returns that error.
type ClassicWriter struct {
	out     *bufio.Writer
	record  []byte
	link    uint32
	tick    uint64 // nanoseconds
	written int64
	every   time.Duration
	flushed machine.Instant
	started bool
	err     error
}

// NewClassicWriter starts a file on w, for frames of one link type, with times
// in micro- or nanoseconds. The caller closes w. flushEvery is
// WriterOptions.FlushEvery.
func NewClassicWriter(w io.Writer, link, snap uint32, resolution Resolution,
	flushEvery time.Duration,
) (*ClassicWriter, error) {
	c := &ClassicWriter{
		out: bufio.NewWriterSize(w, 64<<10), link: link, tick: powersOf10[Nanoseconds-Microseconds],
		every: flushEvery,
	}
	magic := uint32(magicMicro)
	if resolution != Microseconds {
		c.tick, magic = 1, magicNano
	}
	const usual = 262144 // what other programs write for no limit
	if snap == 0 {
		snap = usual
	}
	order := binary.LittleEndian
	h := order.AppendUint32(nil, magic)
	h = order.AppendUint16(h, 2) // version 2.4
	h = order.AppendUint16(h, 4)
	h = order.AppendUint64(h, 0)
	h = order.AppendUint32(h, snap)
	h = order.AppendUint32(h, link)
	return c, c.write(h)
}

func (w *ClassicWriter) write(b []byte) error {
	if w.err == nil {
		_, w.err = w.out.Write(b)
		w.written += int64(len(b))
	}
	return w.err
}

// WriteFrame writes a frame. A classic file has one link type and one time
// format. WriteFrame fails if the frame's link type is another, or if its time
// does not fit.
func (w *ClassicWriter) WriteFrame(f *Frame) error {
	at := uint64(max(f.At, 0))
	switch {
	case f.LinkType != w.link:
		return fmt.Errorf("frame %d: expected link type %d as the frames before, found %d: a classic pcap has one, pcapng "+
			"has room for several", f.Ref.Frame(), w.link, f.LinkType)
	case at%w.tick != 0:
		return fmt.Errorf("frame %d: expected a time in microseconds as the file has them, found nanoseconds: nsecpcap and "+
			"pcapng have them", f.Ref.Frame())
	case at/1e9 > math.MaxUint32:
		return fmt.Errorf("frame %d: expected a time before 2106, found %v: pcapng has room for it",
			f.Ref.Frame(), f.At.Time())
	case len(f.Data) > hardMaxRecord:
		return fmt.Errorf("frame %d: expected at most %d bytes, found %d", f.Ref.Frame(), hardMaxRecord, len(f.Data))
	}
	if !w.started {
		w.started, w.flushed = true, f.At
	} else if w.every > 0 && f.At.Sub(w.flushed) >= w.every {
		w.flushed = f.At
		if err := w.Flush(); err != nil {
			return err
		}
	}
	order := binary.LittleEndian
	h := order.AppendUint32(w.record[:0], uint32(at/1e9))
	h = order.AppendUint32(h, uint32(at%1e9/w.tick))
	h = order.AppendUint32(h, uint32(len(f.Data)))
	h = order.AppendUint32(h, uint32(min(int64(max(f.Length, 0)), math.MaxUint32)))
	w.record = append(h, f.Data...)
	return w.write(w.record)
}

// Flush writes everything so far to the underlying writer.
func (w *ClassicWriter) Flush() error {
	if w.err == nil {
		w.err = w.out.Flush()
	}
	return w.err
}

// Close flushes.
func (w *ClassicWriter) Close() error { return w.Flush() }

// Written returns the size of the file so far, in bytes.
func (w *ClassicWriter) Written() int64 { return w.written }

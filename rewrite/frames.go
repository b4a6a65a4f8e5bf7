package rewrite

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Frames is a capture in memory: a source that can be read again.
type Frames struct {
	list []capture.Frame
	next int
	// How many packets the capture lacks; see analyze.Dropper.
	dropped uint64
	counted bool
	ended   error
}

// maxBytes bounds a capture that is held in memory.
const maxBytes = 1 << 30

// frameCost is the memory of a frame without its bytes.
const frameCost = int(unsafe.Sizeof(capture.Frame{}))

// LoadWithin reads a source to its end. Of a capture that is cut short it
// returns the part before the cut. If the capture takes more than most bytes,
// or more than a GiB, LoadWithin returns an error.
func LoadWithin(src capture.Source, most int) (*Frames, error) {
	most = min(most, maxBytes)
	f := &Frames{}
	size := 0
	for {
		var x capture.Frame
		err := src.Next(&x)
		var cut *capture.CutError
		if errors.As(err, &cut) {
			f.ended = err
		}
		if errors.Is(err, io.EOF) || f.ended != nil {
			if d, ok := src.(analyze.Dropper); ok {
				f.dropped, f.counted = d.Dropped(), d.Counted()
			}
			return f, nil
		}
		if err != nil {
			return nil, err
		}
		if size += frameCost + len(x.Data) + len(x.Options); size > most {
			return nil, fmt.Errorf("the first %d frames take more than %d bytes: cut the capture before it is reduced",
				len(f.list)+1, most)
		}
		x.Data = append([]byte(nil), x.Data...)
		x.Options = append([]byte(nil), x.Options...)
		f.list = append(f.list, x)
	}
}

// Len returns the number of frames.
func (f *Frames) Len() int { return len(f.list) }

// Ended returns a capture.CutError if the capture is cut short, otherwise nil.
func (f *Frames) Ended() error { return f.ended }

// Dropped returns how many packets the capture is known to lack.
func (f *Frames) Dropped() uint64 { return f.dropped }

// Counted reports whether the capture counted all packets that it lacks.
func (f *Frames) Counted() bool { return f.counted }

// At returns frame i, from 0, as it was in its file.
func (f *Frames) At(i int) *capture.Frame { return &f.list[i] }

// Next returns the next frame, with its number in this capture.
func (f *Frames) Next(to *capture.Frame) error {
	if f.next == len(f.list) {
		return io.EOF
	}
	*to = f.list[f.next]
	f.next++
	to.Ref = machine.MakeRef(0, uint64(f.next))
	return nil
}

// Rewind restarts at the first frame.
func (f *Frames) Rewind() error { f.next = 0; return nil }

// Close does nothing.
func (f *Frames) Close() error { return nil }

// pick returns the capture of some of the frames.
func (f *Frames) pick(of []int) *Frames {
	p := &Frames{list: make([]capture.Frame, len(of)), dropped: f.dropped, counted: f.counted}
	for i, n := range of {
		p.list[i] = f.list[n]
	}
	return p
}

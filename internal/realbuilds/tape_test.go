package realbuilds

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// tape is a capture in memory, which can be read again and again. It does not
// say how many packets its tap dropped.
type tape struct {
	frames []capture.Frame
	was    []uint64 // the numbers of the frames in the whole capture; nil for a whole one
	next   int
}

// original returns the number that a frame had in the whole capture.
func (p *tape) original(frame uint64) uint64 {
	if p.was == nil {
		return frame
	}
	return p.was[frame-1]
}

// load reads a capture of testdata/pcaps.
func load(t testing.TB, name string) *tape {
	t.Helper()
	in, err := capture.Open([]string{testenv.Capture(t, filepath.FromSlash(name))}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p := &tape{}
	for {
		var f capture.Frame
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return p
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f.Data, f.Options = bytes.Clone(f.Data), nil
		p.frames = append(p.frames, f)
	}
}

// Next implements capture.Source.
func (p *tape) Next(f *capture.Frame) error {
	if p.next == len(p.frames) {
		return io.EOF
	}
	*f = p.frames[p.next]
	p.next++
	return nil
}

// Close implements capture.Source.
func (p *tape) Close() error { return nil }

// Rewind implements analyze.Rewinder.
func (p *tape) Rewind() error {
	p.next = 0
	return nil
}

// numbered returns a tape of some frames, numbered anew from 1 as a file would.
func numbered(frames []capture.Frame) *tape {
	p := &tape{frames: frames}
	for i := range frames {
		p.was = append(p.was, frames[i].Ref.Frame())
		frames[i].Ref = machine.MakeRef(0, uint64(i+1))
	}
	return p
}

// cut returns the frames from..to-1 (0-based) as a capture of their own.
func (p *tape) cut(from, to int) *tape {
	return numbered(append([]capture.Frame(nil), p.frames[from:to]...))
}

// drop returns the capture without a share of its frames, chosen at random.
func (p *tape) drop(rng *rand.Rand, share float64) *tape {
	var kept []capture.Frame
	for _, f := range p.frames {
		if rng.Float64() >= share {
			kept = append(kept, f)
		}
	}
	return numbered(kept)
}

// snap returns the capture as a snap length of n bytes leaves it.
func (p *tape) snap(n int) *tape {
	q := p.cut(0, len(p.frames))
	for i := range q.frames {
		f := &q.frames[i]
		f.Data = f.Data[:min(n, len(f.Data))]
	}
	return q
}

// datagram is a UDP payload of a capture.
type datagram struct {
	frame    uint64
	at       machine.Instant
	from, to netip.AddrPort
	b        []byte
}

// datagrams returns the UDP payloads of a capture, in the order of the tap.
func (p *tape) datagrams() (list []datagram) {
	d := capture.NewDecoder(capture.DecodeOptions{})
	var x capture.Packet
	for i := range p.frames {
		f := &p.frames[i]
		d.Decode(f, &x)
		if x.Transport == capture.UDP && !x.Duplicate {
			list = append(list, datagram{f.Ref.Frame(), f.At, x.Src, x.Dst, bytes.Clone(x.Payload)})
		}
	}
	return list
}

// write writes the capture to a file.
func (p *tape) write(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w, err := capture.NewWriter(file, capture.WriterOptions{})
	if err != nil {
		return err
	}
	ids := map[uint32]int{} // of interfaces, by link type
	for _, f := range p.frames {
		if _, ok := ids[f.LinkType]; !ok {
			id, err := w.AddInterface(capture.Interface{LinkType: f.LinkType, Resolution: capture.Nanoseconds})
			if err != nil {
				return err
			}
			ids[f.LinkType] = id
		}
		f.Interface, f.Ref = ids[f.LinkType], 0
		if err := w.WriteFrame(&f); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), file.Close())
}

//go:build libpcap && cgo

package libpcap

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/gopacket/pcap"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/machine"
)

// pollTimeout is how long libpcap waits for frames before it reports that there
// are none. This package then checks whether Stop was called.
const pollTimeout = 20 * time.Millisecond

const defaultSnapLength = 256 << 10

// group implements afpacket.Group over handles that it polls in turn.
type group struct {
	handles []*handle
	idle    func()
	turn    int
	quiet   int // handles in a row without a frame
	frames  uint64
	stopped atomic.Bool
	closed  atomic.Bool
	reading sync.Mutex
}

type handle struct {
	name, filter string
	snap         int
	pcap         *pcap.Handle
	over         bool

	mu       sync.Mutex
	received uint64 // of libpcap, whose counters have 32 bits
	dropped  uint64
	before   uint64
	last     pcap.Stats
}

// OpenGroup opens all interfaces, or returns an error and opens none.
func OpenGroup(list []afpacket.Options) (afpacket.Group, error) {
	g := &group{}
	for i := range list {
		h, err := open(&list[i])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("capturing on %s: %w", list[i].Interface, err), g.Close())
		}
		g.handles, g.idle = append(g.handles, h), list[i].Idle
	}
	return g, nil
}

func open(o *afpacket.Options) (*handle, error) {
	inactive, err := pcap.NewInactiveHandle(o.Interface)
	if err != nil {
		return nil, err
	}
	defer inactive.CleanUp()
	snap := o.SnapLength
	if snap <= 0 {
		snap = defaultSnapLength
	}
	set := []error{inactive.SetSnapLen(snap), inactive.SetPromisc(o.Promiscuous), inactive.SetTimeout(pollTimeout)}
	if o.Buffer > 0 {
		set = append(set, inactive.SetBufferSize(o.Buffer))
	}
	if err := errors.Join(set...); err != nil {
		return nil, err
	}
	p, err := inactive.Activate()
	if err != nil {
		return nil, err
	}
	switch {
	case len(o.Program) > 0:
		program := make([]pcap.BPFInstruction, len(o.Program))
		for i, r := range o.Program {
			program[i] = pcap.BPFInstruction{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
		}
		err = p.SetBPFInstructionFilter(program)
	case o.Filter != "":
		err = p.SetBPFFilter(o.Filter)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return &handle{name: o.Interface, filter: o.Filter, snap: snap, pcap: p}, nil
}

// Interfaces implements afpacket.Group.
func (g *group) Interfaces() (list []capture.Interface) {
	for _, h := range g.handles {
		list = append(list, capture.Interface{
			Name: h.name, Filter: h.filter, LinkType: uint32(h.pcap.LinkType()), SnapLength: uint32(h.snap),
			Resolution: capture.Nanoseconds, OS: "libpcap",
		})
	}
	return list
}

// Statistics implements afpacket.Group.
func (g *group) Statistics() (list []capture.Statistics, err error) {
	for _, h := range g.handles {
		st, one := h.statistics(g.closed.Load())
		list, err = append(list, st), errors.Join(err, one)
	}
	return list, err
}

func (h *handle) statistics(closed bool) (capture.Statistics, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !closed {
		now, err := h.pcap.Stats()
		if err != nil {
			return capture.Statistics{}, err
		}
		h.received += uint64(uint32(now.PacketsReceived - h.last.PacketsReceived))
		h.dropped += uint64(uint32(now.PacketsDropped - h.last.PacketsDropped))
		h.before += uint64(uint32(now.PacketsIfDropped - h.last.PacketsIfDropped))
		h.last = *now
	}
	return capture.Statistics{
		FilterAccepted: h.received, OSDropped: h.dropped, Dropped: h.before,
		Known: capture.KnownFilterAccepted | capture.KnownOSDropped | capture.KnownDropped,
	}, nil
}

// Freezes implements afpacket.Group. It returns zeros, because libpcap does not
// count them.
func (g *group) Freezes() []uint64 { return make([]uint64, len(g.handles)) }

// Next implements capture.Source. It polls the interfaces in turn.
func (g *group) Next(f *capture.Frame) error {
	g.reading.Lock()
	defer g.reading.Unlock()
	for {
		switch {
		case g.closed.Load(), g.quiet >= len(g.handles) && g.stopped.Load():
			return io.EOF
		case g.quiet >= len(g.handles):
			if g.idle != nil {
				g.idle()
			}
			g.quiet = 0
		}
		at := g.turn % len(g.handles)
		h := g.handles[at]
		g.turn++
		if h.over {
			g.quiet++
			continue
		}
		data, info, err := h.pcap.ZeroCopyReadPacketData()
		switch {
		case errors.Is(err, pcap.NextErrorTimeoutExpired):
			g.quiet++
			continue
		case errors.Is(err, io.EOF):
			h.over = true
			continue
		case err != nil:
			return fmt.Errorf("capturing on %s: %w", h.name, err)
		}
		g.quiet = 0
		g.frames++
		*f = capture.Frame{
			At: machine.Instant(info.Timestamp.UnixNano()), Ref: machine.MakeRef(0, g.frames), Interface: at, Offset: -1,
			LinkType: uint32(h.pcap.LinkType()), Data: data, Length: info.Length,
		}
		return nil
	}
}

// Stop implements afpacket.Group.
func (g *group) Stop() { g.stopped.Store(true) }

// Close implements capture.Source.
func (g *group) Close() error {
	if g.closed.Load() {
		return nil
	}
	_, err := g.Statistics() // the last reading
	g.closed.Store(true)
	g.reading.Lock()
	defer g.reading.Unlock()
	for _, h := range g.handles {
		h.pcap.Close()
	}
	return err
}

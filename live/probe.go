package live

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
)

const (
	// sampleEvery is the time between two samples.
	sampleEvery = time.Second
	// sampleSoon is the least time between two samples, where a finding or a new port asks for one.
	// Source: choice, ten samples a second cost under one percent of a processor
	sampleSoon = 100 * time.Millisecond
	// sampleShare bounds the time that samples take, as a share of all time: on a host with very many sockets they
	// become rarer.
	// Source: choice, one part in twenty
	sampleShare = 20
	// decodeAll is how many frames between two samples are all decoded for their ports. Of later ones, it is one of
	// decodeOf.
	// Source: choice, a port with 16 frames in a second shows all the same
	decodeAll, decodeOf = 4096, 16
)

// ownersVariable passes the owners of sockets to the program that begins again without privileges.
const ownersVariable = "ACKSCOPE_SOCKET_OWNERS"

// Probe samples the counters of the capturing host beside the frames of a live capture. Options.Probe
// has a run use it. A caller without a run passes each frame to Frame itself, on one goroutine.
//
// A process that gives up its privileges by beginning again calls NewProbe before, and in the new
// process. So the probe knows which process holds which socket.
type Probe struct {
	sampler   *host.Sampler
	timeline  host.Timeline
	addresses []netip.Addr
	local     map[netip.Addr]bool
	ports     []uint16
	seen      [1 << 16 / 64]uint64 // bits of the ports
	fresh     bool                 // there is a port that no sample has looked for
	asked     bool                 // a finding asks for a sample
	decoder   *capture.Decoder
	packet    capture.Packet
	frames    int             // since the last sample
	due, soon machine.Instant // when the next sample is taken; when it may be taken
	off       bool            // this system has no counters
}

const procFolder = "/proc"

// NewProbe returns a probe. It looks which processes hold which sockets, as far as privileges let it.
func NewProbe() *Probe {
	p := newProbe(procFolder)
	if text, ok := os.LookupEnv(ownersVariable); ok {
		p.sampler.Owners.Adopt(text)
		_ = os.Unsetenv(ownersVariable) // the name is valid
	} else {
		p.sampler.Owners.Survey()
		_ = os.Setenv(ownersVariable, p.sampler.Owners.Text()) // it has no NUL
	}
	p.addressesNow()
	return p
}

// newProbe returns a probe of what a folder of proc(5) shows.
func newProbe(proc string) *Probe {
	return &Probe{
		sampler: host.NewSampler(proc), local: map[netip.Addr]bool{},
		decoder: capture.NewDecoder(capture.DecodeOptions{}),
	}
}

// Opened is called when the privileges are given up: no other process needs to know the owners.
func (p *Probe) Opened() { _ = os.Unsetenv(ownersVariable) }

// Host returns the samples.
func (p *Probe) Host() *host.Timeline { return &p.timeline }

// addressesNow reads the addresses of the host.
func (p *Probe) addressesNow() {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return // those known so far stay
	}
	p.addresses = p.addresses[:0]
	clear(p.local)
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				p.addresses = append(p.addresses, ip.Unmap())
				p.local[ip.Unmap()] = true
			}
		}
	}
}

// Frame looks at a frame. If a sample is due, Frame takes and returns it; otherwise it returns nil.
func (p *Probe) Frame(f *capture.Frame) *host.Sample { return p.keep(p.look(f)) }

// Last takes a sample where a capture ends, so that the samples cover its last frames. It returns nil
// if there is nothing to sample.
func (p *Probe) Last() *host.Sample { return p.keep(p.take()) }

// look looks at a frame, and takes a sample if one is due. It does not touch the timeline, so others
// may read that meanwhile.
func (p *Probe) look(f *capture.Frame) *host.Sample {
	if p.frames++; p.frames <= decodeAll || p.frames%decodeOf == 0 {
		p.decoder.Decode(f, &p.packet)
		if x := &p.packet; x.Transport == capture.UDP {
			p.port(x.Src)
			p.port(x.Dst)
		}
	}
	if f.At >= p.due || (p.fresh || p.asked) && f.At >= p.soon {
		return p.take()
	}
	return nil
}

// keep adds a sample to the timeline, and returns it.
func (p *Probe) keep(s *host.Sample) *host.Sample {
	if s != nil {
		p.timeline.Add(s)
	}
	return s
}

// port notes a port of the host.
func (p *Probe) port(a netip.AddrPort) {
	word, bit := &p.seen[a.Port()/64], uint64(1)<<(a.Port()%64)
	if *word&bit != 0 || !p.local[a.Addr()] {
		return
	}
	*word |= bit
	p.ports = append(p.ports, a.Port())
	p.fresh = true
}

// take takes a sample now.
func (p *Probe) take() *host.Sample {
	if p.off || len(p.ports) == 0 {
		return nil
	}
	began := time.Now()
	p.addressesNow()
	s, ok := p.sampler.Take(machine.Instant(began.UnixNano()), slices.Clone(p.addresses), slices.Clone(p.ports))
	if p.off = !ok; p.off {
		return nil
	}
	p.fresh, p.asked, p.frames = false, false, 0
	rest := scale.Mul(time.Since(began), sampleShare)
	p.due, p.soon = s.At.Add(max(sampleEvery, rest)), s.At.Add(max(sampleSoon, rest))
	return s
}

// Ask has the next frame take a sample, for a finding.
func (p *Probe) Ask() { p.asked = true }

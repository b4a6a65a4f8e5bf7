package reader

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

// Probe samples the counters of the capturing host. The goroutine that reads calls its methods.
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
	took      *host.Sample    // that is not written yet
	off       bool            // this system has no counters
}

const procFolder = "/proc"

// NewProbe looks which processes hold which sockets, while there are privileges. It is called before they are given
// up, and again after that.
func NewProbe() *Probe {
	p := &Probe{
		sampler: host.NewSampler(procFolder), local: map[netip.Addr]bool{},
		decoder: capture.NewDecoder(capture.DecodeOptions{}),
	}
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

// opened is called when the privileges are given up.
func (p *Probe) opened() { _ = os.Unsetenv(ownersVariable) }

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

// note looks at a frame, and takes a sample if one is due.
func (p *Probe) note(f *capture.Frame) {
	if p.frames++; p.frames <= decodeAll || p.frames%decodeOf == 0 {
		p.decoder.Decode(f, &p.packet)
		if x := &p.packet; x.Transport == capture.UDP {
			p.port(x.Src)
			p.port(x.Dst)
		}
	}
	if f.At >= p.due || (p.fresh || p.asked) && f.At >= p.soon {
		p.Take()
	}
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

// Take takes a sample now.
func (p *Probe) Take() {
	if p.off || len(p.ports) == 0 {
		return
	}
	began := time.Now()
	p.addressesNow()
	s, ok := p.sampler.Take(machine.Instant(began.UnixNano()), slices.Clone(p.addresses), slices.Clone(p.ports))
	if p.off = !ok; p.off {
		return
	}
	p.timeline.Add(s)
	p.took, p.fresh, p.asked, p.frames = s, false, false, 0
	rest := scale.Mul(time.Since(began), sampleShare)
	p.due, p.soon = s.At.Add(max(sampleEvery, rest)), s.At.Add(max(sampleSoon, rest))
}

// Ask has the next frame take a sample, for a finding.
func (p *Probe) Ask() { p.asked = true }

// sample takes a sample if one is due at a live frame, and writes it.
func (r *Reader) sample(f *capture.Frame) error {
	r.Probe.note(f)
	return r.writeSample()
}

// lastSample takes a sample where a live capture ends, so that the samples cover its last frames. It returns the error
// that ended it.
func (r *Reader) lastSample(ended error) error {
	if r.Probe == nil {
		return ended
	}
	r.Probe.Take()
	if err := r.writeSample(); err != nil {
		return err
	}
	return ended
}

// writeSample writes the sample that was taken last.
func (r *Reader) writeSample() error {
	s := r.Probe.took
	r.Probe.took = nil
	if s != nil && r.Save != nil && r.SaveErr == nil {
		if err := r.Save.WriteHost(s); err != nil {
			return r.fail(err)
		}
	}
	return nil
}

// Host implements analyze.Hosted.
func (r *Reader) Host() *host.Timeline {
	switch {
	case r.In != nil:
		return r.In.Host()
	case r.Probe != nil:
		return &r.Probe.timeline
	}
	return nil
}

// InterfaceName implements analyze.Hosted.
func (r *Reader) InterfaceName(file, index int) string {
	if r.In != nil {
		return r.In.InterfaceName(file, index)
	}
	return r.Live.Group.Interfaces()[index].Name
}

// ForgetHost implements analyze.Sampled.
func (r *Reader) ForgetHost() {
	if r.In != nil {
		r.In.ForgetHost()
	}
}

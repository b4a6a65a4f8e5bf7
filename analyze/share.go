package analyze

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Two processes that will read the same capture can share the first run. Each follows the flows of
// some pairs of hosts, and tells the other what it learned of them. A browser has a process for each
// processor, and no memory that they share.
//
//	process 0: flows 1, 3 -.- what 0 learned -> both have the Survey of all flows
//	process 1: flows 2, 4 -'- what 1 learned ->
//
// Where flows concern each other across shares, each process makes the whole run: see shard.

// Partner is the other process of a first run that two share. Both have the same options.
type Partner struct {
	// Capture names the capture. Where the other process speaks of another one, each makes its own run.
	Capture string
	// Share is 0 in one of the processes, and 1 in the other.
	Share int
	// Trade gives what this process learned, and returns what the other one did. No bytes mean that
	// a process learned nothing that the other can use, or has failed. LearnWith calls it once.
	Trade func(own []byte) (other []byte)
}

const (
	// partners is how many processes share a run.
	partners = 2
	// evenSample is after how many frames a run ends that does not pay: one of the shares has less than one
	// evenPart-th of them. The processes then make a run each, at the same time.
	// Source: bound, the frames that a browser's worker reads in 10 ms
	evenSample, evenPart = 4096, 8
)

// LearnWith is Learn, shared with another process. It returns what Learn's session returns as its
// Survey.
func LearnWith(p *Partner, src Rewinder, o Options) (*Survey, error) {
	own, err := learnShare(p.Share, src, o)
	if err != nil && !errors.Is(err, errRefused) {
		p.Trade(nil)
		return nil, err
	}
	var told []byte
	if own != nil {
		own.capture = p.Capture
		told, _ = own.write() // where it is not portable, the other process makes the whole run
	}
	if other, err := readShare(o.Registry, p.Trade(told)); own != nil && err == nil && own.fits(other) {
		return own.join(other, &o), nil
	}
	s, err := Learn(src, o)
	if err != nil {
		return nil, err
	}
	return s.Survey(), nil
}

// share is what a run learned of some flows.
type share struct {
	capture string
	late    bool
	frames  uint64
	dropped uint64
	flows   []surveyed
	born    []uint64 // by flow: how many frames there were when it began
}

// learnShare reads a source for the flows of some pairs of hosts, and rewinds it. The error is that
// of Learn, or errRefused where flows concern each other across shares.
func learnShare(index int, src Rewinder, o Options) (*share, error) {
	o.Sink, o.Split, o.Survey, o.Fed, o.Gone, o.NoRelays = nil, nil, nil, nil, nil, true
	if o.Limits.Idle > 0 {
		return nil, errRefused
	}
	s := NewSession(o)
	s.shard = &shard{index: index, of: partners, strict: true, partner: true, refused: &atomic.Bool{}}
	err := s.driveShare(src)
	refused := errors.Is(err, errRefused)
	switch {
	case err == nil || endsEarly(err):
		finish(src, []*Session{s})
	case !refused:
		return nil, err
	}
	if err := src.Rewind(); err != nil {
		return nil, err
	}
	if h, ok := src.(Hosted); ok && !h.Host().Empty() {
		refused = true
		if x, ok := src.(Sampled); ok {
			x.ForgetHost()
		}
	}
	if refused || s.shard.refused.Load() || s.misread || len(s.flows) < s.begun {
		return nil, errRefused
	}
	v := s.learned()
	x := &share{late: s.late, frames: v.frames, dropped: v.dropped, flows: v.flows}
	for _, f := range s.flows {
		x.born = append(x.born, f.born)
	}
	return x, nil
}

// driveShare feeds the session the frames of its share. The error is that of Run, or errRefused.
func (s *Session) driveShare(src capture.Source) error {
	var r router
	r.begin(s.options.Decode, partners)
	decoder := capture.NewDecoder(s.options.Decode)
	var f capture.Frame
	var p capture.Packet
	var first, latest, before machine.Instant
	for n := uint64(0); ; n++ {
		err := src.Next(&f)
		if err != nil {
			s.first, s.last, s.at, s.before, s.n = first, latest, before, before, n
			if !decoder.FragmentsFit(partners) {
				return errRefused
			}
			if err == io.EOF { //nolint:errorlint // a clean end is io.EOF itself; a cut may wrap one
				err = nil
			}
			return err
		}
		if n == 0 {
			first, latest, before = f.At, f.At, f.At
		}
		at, quotes := r.shardOf(&f)
		if quotes || s.shard.refused.Load() || n == evenSample && min(r.load[0], r.load[1]) < evenSample/evenPart {
			return errRefused
		}
		if int(at) == s.shard.index {
			s.first, s.last, s.at, s.n = first, latest, before, n
			decoder.Decode(&f, &p)
			s.Feed(&f, &p)
		}
		latest, before = max(latest, f.At), f.At
	}
}

// requirePortable refuses the run if the other process cannot have what is learned of a flow.
func (x *shard) requirePortable(f *Flow) {
	if x == nil || !x.partner {
		return
	}
	if p := f.Protocol.Portable; p != nil {
		if _, err := p.Write(f.Verdict.Config); err == nil {
			return
		}
	}
	x.refuse()
}

// fits reports whether both processes have read the same.
func (x *share) fits(y *share) bool {
	return x.capture == y.capture && x.frames == y.frames && x.dropped == y.dropped
}

// join returns what both processes learned.
func (x *share) join(y *share, o *Options) *Survey {
	late := x.late || y.late
	v := &Survey{dropped: x.dropped, frames: x.frames}
	type flow struct {
		surveyed
		born  uint64
		share int
	}
	var all []flow
	for i, part := range []*share{x, y} {
		for k, f := range part.flows {
			f.moveKnown = f.moveKnown && !late
			all = append(all, flow{f, part.born[k], i})
		}
	}
	// The flows of one frame are in one share, in their order.
	slices.SortStableFunc(all, func(a, b flow) int { return cmp.Compare(a.born, b.born) })
	var streams streamNumbers
	for _, f := range all {
		f.stream = streams.number(f.share, f.transport, f.stream)
		v.flows = append(v.flows, f.surveyed)
	}
	v.streams = streams.count
	v.complete()
	v.shards = !late && o.Limits.separable(len(v.flows))
	v.scopeless = v.shards // scopes are not portable
	return v
}

// portableShare is a share as bytes (JSON).
type portableShare struct {
	Capture         string
	Late            bool
	Frames, Dropped uint64
	Flows           []portableFlow
}

// portableFlow is surveyed as bytes.
type portableFlow struct {
	A, B        netip.AddrPort
	Transport   capture.Transport
	Protocol    string // "" where none explains the flow
	Bits        float64
	Confidence  float64
	Reason      string
	Settled     bool
	First       machine.Ref
	Born        uint64
	Stream      int
	Session     int
	MoveKnown   bool
	CaptureLoss int
	Config      *dissect.Config // without what only the protocol knows
	Own         []byte          // that: see dissect.Portable
}

// errNotPortable says that a flow has what another process cannot have.
var errNotPortable = errors.New("not portable")

// write returns the share as bytes.
func (x *share) write() ([]byte, error) {
	p := portableShare{
		Capture: x.capture, Late: x.late, Frames: x.frames, Dropped: x.dropped, Flows: make([]portableFlow, len(x.flows)),
	}
	for i := range x.flows {
		f := &x.flows[i]
		to := &p.Flows[i]
		*to = portableFlow{
			A: f.a, B: f.b, Transport: f.transport, Bits: f.verdict.Bits, Confidence: f.verdict.Confidence,
			Reason: f.verdict.Reason, Settled: f.verdict.Settled, First: f.first, Born: x.born[i], Stream: f.stream,
			Session: f.session, MoveKnown: f.moveKnown, CaptureLoss: f.captureLoss,
		}
		if f.was != nil {
			return nil, errNotPortable
		}
		if f.protocol == nil {
			continue
		}
		if f.protocol.Portable == nil {
			return nil, errNotPortable
		}
		var err error
		if to.Own, err = f.protocol.Portable.Write(f.verdict.Config); err != nil {
			return nil, err
		}
		c := *f.verdict.Config
		c.Profile, c.Facts.Settings = nil, nil
		to.Protocol, to.Config = f.protocol.Name, &c
	}
	return json.Marshal(&p)
}

// readShare reads what another process learned.
func readShare(r *dissect.Registry, from []byte) (*share, error) {
	if len(from) == 0 {
		return nil, errNotPortable
	}
	var p portableShare
	if err := json.Unmarshal(from, &p); err != nil {
		return nil, fmt.Errorf("what another process learned: %w", err)
	}
	x := &share{capture: p.Capture, late: p.Late, frames: p.Frames, dropped: p.Dropped}
	for i := range p.Flows {
		f := &p.Flows[i]
		k := surveyed{
			a: f.A, b: f.B, transport: f.Transport, first: f.First, stream: f.Stream, session: f.Session,
			moveKnown: f.MoveKnown, captureLoss: f.CaptureLoss, verdict: dissect.Verdict{
				Config: f.Config, Bits: f.Bits, Confidence: f.Confidence, Reason: f.Reason, Settled: f.Settled,
			},
		}
		if f.Protocol != "" {
			var ok bool
			if k.protocol, ok = r.Lookup(f.Protocol); !ok || k.protocol.Portable == nil || f.Config == nil {
				return nil, fmt.Errorf("what another process learned: flow %d of %q: %w", i, f.Protocol, errNotPortable)
			}
			if err := k.protocol.Portable.Read(f.Config, f.Own); err != nil {
				return nil, err
			}
		}
		x.flows, x.born = append(x.flows, k), append(x.born, f.Born)
	}
	return x, nil
}

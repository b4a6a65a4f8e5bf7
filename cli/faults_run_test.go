package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/sim"
)

// Positions of the tap, relative to the faulty endpoint.
const (
	tapNear = iota
	tapBetween
	tapFar
	taps
)

// sighting is one datagram as a tap saw it.
type sighting struct {
	at   machine.Instant
	link int  // number of the flow in the run
	own  bool // sent by the faulty endpoint
	b    []byte
}

// difference is the first datagram of the faulty endpoint to one peer that a
// correct endpoint with the same inputs would not have sent.
type difference struct {
	index int // position among the datagrams that the endpoint sends to that peer
	at    machine.Instant
}

// shadow is a correct endpoint that gets the same inputs as the faulty one.
type shadow struct {
	endpoint machine.Endpoint
	out      machine.Effects
	same     map[machine.Peer]int
	differs  map[machine.Peer]*difference

	// came counts the datagrams of a peer that both endpoints have read. cleared
	// maps a message to that count when the shadow considered it acked.
	came    map[machine.Peer]int
	cleared map[uint32]int
}

// faultRun is one run of a scenario with a fault: what three taps saw of it,
// and where the faulty endpoint first went wrong.
type faultRun struct {
	line      faultOf
	flags     simulate.Flags
	args      []string
	side      int // side of the faulty endpoint
	sightings [taps][]sighting
	paths     [taps]string
	shadow    *shadow
	links     map[int]machine.Peer // the faulty endpoint's number of its peer on a link
}

// flagsOf returns the flags of `ackscope simulate` for a fault's scenario.
func flagsOf(t *testing.T, x faultOf, seed int, loss string) (f simulate.Flags, args []string) {
	t.Helper()
	args = append(args, x.Scenario...)
	if own := slices.Index(args, "--loss"); own >= 0 {
		args[own+1] = loss
	}
	usual := func(name, value string) {
		if !slices.Contains(args, name) {
			args = append(args, name, value)
		}
	}
	usual("--loss", loss)
	usual("--protocol", map[string]string{
		"gaffer": "gaffer:reliable", "riptide": "riptide:main", "notes": "riptide:notes",
		"srdp": "srdp",
	}[x.protocol])
	usual("--duration", "8s")
	args = append(args, "--fault", x.Name, "--seed", fmt.Sprint(seed))
	return simulationFlags(t, args...), args
}

// simulationFlags parses flags of `ackscope simulate`.
func simulationFlags(t *testing.T, args ...string) (f simulate.Flags) {
	t.Helper()
	set := pflag.NewFlagSet("simulate", pflag.ContinueOnError)
	f.Register(set, known.Simulators())
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// tapFile makes the tap of a simulation write the capture that its flags name.
// The returned function completes the file.
func tapFile(t *testing.T, s *simulate.Simulation) func() error {
	t.Helper()
	at, err := s.TapAt()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(s.Flags.Write)
	if err != nil {
		t.Fatal(err)
	}
	end, failed, err := s.TapInto(at, file)
	if err != nil {
		t.Fatal(err)
	}
	return func() error { return errors.Join(end(), *failed, file.Close()) }
}

// runFault runs a scenario once, with taps at three places and the shadow.
func runFault(t *testing.T, a *app.App, dir string, x faultOf, seed int, loss string) *faultRun {
	t.Helper()
	flags, args := flagsOf(t, x, seed, loss)
	r := &faultRun{line: x, flags: flags, args: args, links: map[int]machine.Peer{}}
	if flags.Faulty == "b" {
		r.side = 1
	}
	s, err := simulate.NewSimulation(a, known.Simulators(), &r.flags)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	right := flags
	right.Fault = ""
	correct, err := simulate.NewSimulation(a, known.Simulators(), &right)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	var closers []func() error
	for at := range r.paths {
		r.paths[at] = filepath.Join(dir, fmt.Sprintf("%d.pcapng", at))
		s.Flags.Write, s.Flags.Tap = r.paths[at], r.place(at)
		closers = append(closers, tapFile(t, s))
	}
	faulty := -1
	for i, l := range s.Links {
		wrong, called := l.A, l.PeerOfA
		if r.side == 1 {
			wrong, called = l.B, l.PeerOfB
		}
		faulty, r.links[i] = wrong.Index, called
		for at, share := range r.shares() {
			l.Tap(share, func(seen sim.Tapped) {
				r.sightings[at] = append(r.sightings[at], sighting{seen.At, i, seen.From == wrong, seen.Bytes})
			})
		}
	}
	r.shadow = &shadow{
		endpoint: correct.World.Hosts()[faulty].Endpoint(), same: map[machine.Peer]int{},
		differs: map[machine.Peer]*difference{},
		came:    map[machine.Peer]int{}, cleared: map[uint32]int{},
	}
	s.World.Watch(func(step *sim.Step) {
		if step.Host.Index == faulty {
			r.shadow.step(step)
		}
	})
	if err := s.World.Run(machine.Instant(flags.Duration + time.Second)); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	for _, c := range closers {
		if err := c(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	return r
}

// place returns the position of a tap, as a value of --tap.
func (r *faultRun) place(at int) string {
	switch {
	case at == tapBetween:
		return "between"
	case (at == tapNear) == (r.side == 0):
		return "a"
	}
	return "b"
}

// shares returns the positions of the taps as shares of the path from a to b.
func (r *faultRun) shares() [taps]float64 {
	if r.side == 0 {
		return [taps]float64{0, 0.5, 1}
	}
	return [taps]float64{1, 0.5, 0}
}

// step passes an input of the faulty endpoint to the shadow, and compares the
// bytes that both send.
func (s *shadow) step(step *sim.Step) {
	s.out.Reset()
	if err := s.endpoint.Step(step.At, step.In, &s.out); err != nil {
		s.out.Reset() // the faulty endpoint may continue where a correct one has ended
	}
	if in, ok := step.In.(machine.Arrive); ok {
		s.came[in.From]++
		for i := range s.out.Events {
			if e := &s.out.Events[i]; e.Kind == machine.EventAcked && e.Channel != riptide.ChannelNotify {
				s.cleared[e.Sequence] = s.came[in.From]
			}
		}
	}
	of := func(p machine.Peer, list []machine.Transmission) (own [][]byte) {
		for _, x := range list {
			if x.To == p {
				own = append(own, x.Bytes)
			}
		}
		return own
	}
	peers := map[machine.Peer]bool{}
	for _, list := range [][]machine.Transmission{step.Out.Transmit, s.out.Transmit} {
		for _, x := range list {
			peers[x.To] = true
		}
	}
	for p := range peers {
		if s.differs[p] != nil {
			continue
		}
		got, want := of(p, step.Out.Transmit), of(p, s.out.Transmit)
		n := 0
		for n < len(got) && n < len(want) && bytes.Equal(got[n], want[n]) {
			n++
		}
		s.same[p] += n
		if n < len(got) || n < len(want) {
			s.differs[p] = &difference{s.same[p], step.At}
		}
	}
}

// view is what one tap saw of one flow.
type view struct {
	run       *faultRun
	at        int
	link      int
	flow      int // number of the flow in a capture of the view
	sightings []sighting
	frames    []uint64
}

func (r *faultRun) views(at int) (list []*view) {
	byLink := map[int]*view{}
	for i, x := range r.sightings[at] {
		v := byLink[x.link]
		if v == nil {
			v = &view{run: r, at: at, link: x.link, flow: len(list) + 1}
			byLink[x.link] = v
			list = append(list, v)
		}
		v.sightings, v.frames = append(v.sightings, x), append(v.frames, uint64(i+1))
	}
	return list
}

// differs returns the frame of the first datagram of the faulty endpoint that a
// correct one would not have sent. It returns 0 for none. It holds only at the
// tap near the endpoint.
func (v *view) differs() uint64 {
	d := v.run.shadow.differs[v.run.links[v.link]]
	if d == nil {
		return 0
	}
	n := 0
	for i, x := range v.sightings {
		if !x.own {
			continue
		}
		if n == d.index {
			return v.frames[i]
		}
		n++
	}
	return 0
}

// since returns when the faulty endpoint first went wrong. It returns false if
// it never did.
func (v *view) since() (machine.Instant, bool) {
	d := v.run.shadow.differs[v.run.links[v.link]]
	if d == nil {
		return 0, false
	}
	return d.at, true
}

// when returns the time of a frame.
func (v *view) when(frame uint64) machine.Instant {
	return v.sightings[slices.Index(v.frames, frame)].at
}

// replayObject is the part of replay --json that the test reads.
type replayObject struct {
	Flow    int    `json:"flow"`
	Side    string `json:"side"`
	Addr    string `json:"addr"`
	Verdict string `json:"verdict"`
	Rule    string `json:"rule"`
	Frame   uint64 `json:"first_frame"`
}

// replayed replays the capture of a tap, and returns the results of the faulty
// side of each flow. No other side may diverge.
func (r *faultRun) replayed(t *testing.T, at int) map[int]replayObject {
	t.Helper()
	path := r.paths[at]
	vantage := "between"
	switch r.place(at) {
	case "a":
		vantage = sideOf(t, path, simulate.Addrs[0].Addr())
	case "b":
		vantage = sideOf(t, path, simulate.Addrs[1].Addr())
	}
	args := []string{"replay", "--json", "-q", "--vantage", vantage, path}
	if r.line.protocol == "riptide" || r.line.protocol == "notes" {
		args = append(args, "--behaviour", r.behaviour())
	}
	if article.LookupFault(r.line.Name) != nil {
		args = append(args, "--behaviour", "gaffer@article")
	}
	// Some runs lose nearly all packets: too few are acked to recognise Gaffer.
	if r.line.protocol == "gaffer" {
		args = append(args, "--profiles", messagesFile, "--profiles", simpleFile, "--profiles", resendFile, "-d",
			fmt.Sprintf("udp.port==%d,%s", simulate.Addrs[1].Port(), r.flags.Protocol))
	}
	var out, trouble bytes.Buffer
	if code := runKnown(args, app.Streams{Out: &out, Err: &trouble}); code > 1 {
		t.Fatalf("%v: exit %d: %s", args, code, trouble.String())
	}
	found := map[int]replayObject{}
	for line := range strings.Lines(out.String()) {
		var o replayObject
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(o.Addr, simulate.Addrs[r.side].Addr().String()+":") {
			found[o.Flow] = o
		} else if o.Verdict == "diverges" {
			t.Errorf("%s: tap at %s: the honest side %s (%s) diverges: %s at frame %d", r, r.place(at), o.Side, o.Addr,
				o.Rule, o.Frame)
		}
	}
	if len(found) == 0 {
		t.Errorf("%s: tap at %s: the faulty side was not judged", r, r.place(at))
	}
	return found
}

// behaviour returns the Riptide behaviour that the faulty endpoint should have.
func (r *faultRun) behaviour() string {
	switch r.flags.Protocol {
	case "riptide:notes":
		return "riptide@notes"
	case "riptide:2.0":
		return "riptide@2.0"
	case "riptide:2.2.1":
		return "riptide@2.1.1-2.2.1"
	}
	return "riptide@main"
}

// String returns the command that repeats the run.
func (r *faultRun) String() string {
	return "simulate " + strings.Join(r.args, " ")
}

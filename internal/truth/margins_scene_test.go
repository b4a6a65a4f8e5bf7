package truth

import (
	"fmt"
	"hash/fnv"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
	display "github.com/ackscope/ackscope/show"
)

// scene is a capture, recorded or simulated, of which it is known what happened.
type scene struct {
	name     string
	path     string // uncompressed
	registry *dissect.Registry
	// fresh returns the registry of one analysis, where a registry keeps what it has inferred; nil
	// where it keeps nothing.
	fresh func() *dissect.Registry
	// faulty is the address of the endpoint that does something wrong; invalid where
	// both are right. Of a recorded run it is open who is.
	faulty   netip.Addr
	recorded bool
	// altered is set where datagrams were damaged, left out or put together from two
	// runs: who seems to diverge there does so by that.
	altered bool
	// check gives a sentence for each fact told that the logs deny, or that is missing.
	check func(*ripCapture) []string
}

// outcome is what is told of a scene.
type outcome struct {
	told, judged part // by the trackers, and by the judges
	certain      int  // facts
	found        int  // divergences of the endpoint that is faulty
	survey       *analyze.Survey
	skipped      bool // not analyzed: another scene has shown a fault
}

// divergesAs stands between a side that diverges and the rule that it breaks.
const divergesAs = " diverges: "

// part is what one of them tells.
type part struct {
	faults []string // what is wrong
	digest uint64   // of all that is told
}

// faults returns all that is wrong.
func (o *outcome) faults() []string { return slices.Concat(o.told.faults, o.judged.faults) }

// registryOf has all protocols: no capture is read as another.
func registryOf() *dissect.Registry {
	return dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
}

// analyze analyzes a scene with the constants as they are now. A constant of a judge changes only
// what the judge finds. Then was holds what was told of the scene, and its survey.
func (s *scene) analyze(t *testing.T, was *outcome) (o outcome) {
	in, err := capture.Open([]string{s.path}, capture.Options{})
	if err != nil {
		t.Errorf("%s: %v", s.name, err)
		return o
	}
	defer in.Close()
	if s.fresh != nil {
		s.registry = s.fresh()
	}
	if was != nil {
		o = outcome{told: was.told, certain: was.certain, survey: was.survey}
	} else if err := s.track(in, &o); err != nil {
		t.Errorf("%s: %v", s.name, err)
		return o
	}
	if err := s.judge(in, &o); err != nil {
		t.Errorf("%s: %v", s.name, err)
	}
	return o
}

// track has the trackers read the capture, and holds what they tell against the logs.
func (s *scene) track(in *capture.Input, o *outcome) error {
	c := &ripCapture{}
	if err := c.analyze(in, s.registry); err != nil {
		return err
	}
	o.survey, o.told.faults = c.survey, s.check(c)
	sum := fnv.New64a()
	for _, f := range c.session.Flows() {
		if f.Protocol != nil {
			o.digestOf(sum, c, f)
		}
	}
	o.told.digest = sum.Sum64()
	return in.Rewind()
}

// digestOf adds all that is told of a flow, and counts what is certain.
func (o *outcome) digestOf(sum io.Writer, c *ripCapture, f *analyze.Flow) {
	fmt.Fprintln(sum, f.ID, f.Facts().Vantage, f.Facts().VantageReason, f.RTT(machine.A),
		f.RTT(machine.B), f.Loss(machine.A), f.Loss(machine.B))
	for i := range c.events[f.ID] {
		e := &c.events[f.ID][i]
		if e.Certainty == machine.Certain && e.Kind != machine.EventRegraded {
			o.certain++
		}
		fmt.Fprintln(sum, e.Kind, e.Side, e.Certainty, e.Sequence64, e.Ref, e.By, e.RTT)
	}
	for i := range c.messages[f.ID] {
		m := &c.messages[f.ID][i]
		if m.Certainty == machine.Certain && m.Delivered != machine.Unanswered {
			o.certain++
		}
		fmt.Fprintln(sum, m.From, m.Mode, m.Sequence64, m.ID, m.Attempts, m.Acked, m.Delivered, m.Deliveries,
			m.DeliveredBy, m.Certainty)
	}
	for i := range c.anomalies[f.ID] {
		a := &c.anomalies[f.ID][i]
		fmt.Fprintln(sum, a.Rule.ID, a.Side, a.Certainty, a.Ref, a.About)
	}
	for _, x := range f.Findings() {
		fmt.Fprintln(sum, x.Rule.ID, x.Side, x.Certainty, x.Count, x.Figures)
	}
}

// judge replays a scene. An endpoint that is right must not diverge for certain. Of a recorded run
// whoever diverges does so by what its library does, which the tests of package replay
// hold: no other side may.
func (s *scene) judge(in *capture.Input, o *outcome) error {
	options := replay.Options{Analysis: analyze.Options{Registry: s.registry}, Survey: o.survey}
	file, err := replay.Run(s.path, in, options)
	if err != nil {
		return err
	}
	sum := fnv.New64a()
	for i := range file.Results {
		r := &file.Results[i]
		fmt.Fprintln(sum, r.Flow.ID, r.Side, r.Behaviour, r.Compared, r.Undecided)
		if r.Divergence == nil {
			continue
		}
		fmt.Fprintln(sum, r.Divergence.Rule.ID, r.Divergence.Ref)
		switch at := r.Flow.Addr(r.Side); {
		case s.altered, r.Certainty() < machine.Certain && at.Addr() != s.faulty:
		case s.recorded || at.Addr() != s.faulty:
			o.judged.faults = append(o.judged.faults, fmt.Sprint(at, divergesAs, r.Divergence.Rule.ID))
		default:
			o.found++
		}
	}
	o.judged.digest = sum.Sum64()
	return nil
}

// eventsOf returns what the contract says of `events --json`.
func eventsOf(c *ripCapture) (list []event) {
	for _, f := range c.session.Flows() {
		if f.Protocol == nil {
			continue
		}
		for i := range c.events[f.ID] {
			e := &c.events[f.ID][i]
			list = append(list, event{
				Protocol: f.Protocol.Name, Flow: f.ID, Frame: int(e.Ref.Frame()), Time: time.Unix(0, int64(e.At)),
				Addr: addrPort{f.Addr(e.Side)}, Peer: addrPort{f.Addr(e.Side.Other())}, Event: display.EventName(f, e.Kind),
				Sequence: int(e.Sequence), Certainty: e.Certainty.String(),
			})
		}
	}
	return list
}

// uncompressed writes a capture into a folder as it is, for it is read many times.
func uncompressed(t *testing.T, path, dir string) string {
	t.Helper()
	to := filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), ".gz"))
	if err := os.WriteFile(to, unzip(t, path), 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// strict returns a sentence for each flow in which the tap is said beyond doubt to stand
// at a side where it does not. The tap stands at the addresses given.
func strict(c *ripCapture, near func(netip.AddrPort) bool) (faults []string) {
	for _, f := range c.session.Flows() {
		v := f.Facts()
		if f.Protocol == nil || strings.HasPrefix(v.VantageReason, "likely") {
			continue
		}
		for _, x := range []machine.Side{machine.A, machine.B} {
			if v.Vantage == machine.VantageA+machine.Vantage(x) && !near(f.Addr(x)) {
				faults = append(faults, fmt.Sprintf("the tap is said to stand at %v", f.Addr(x)))
			}
		}
	}
	return faults
}

// relayedID is the id of the messages that the servers of recorded runs pass on, of
// which no log tells.
const relayedID = 31

// simulatedName is what simulated runs are called, where recorded ones have their name.
const simulatedName = "simulated"

// holdsRiptide returns a sentence for each kind of message told as certain that the logs deny.
// Of a side at the tap it returns one for what is missing.
func holdsRiptide(c *ripCapture, x *connection, s machine.Side) (faults []string) {
	if c.run.Partial[x.sides[s]] {
		return nil
	}
	// Where the tap of a simulated run is taken to stand elsewhere, less is told.
	near := c.near(x, s) && (c.name != simulatedName || x.flow.Facts().Vantage.Near(s))
	want, got := map[ripKey]int{}, map[ripKey]tally{}
	early := map[ripKey]int{} // of want, those that were surely read while the side spoke
	for i := range x.lines[s] {
		if l := &x.lines[s][i]; l.Event == "receive" && l.T >= c.first {
			want[logKey(l)]++
			if l.T < c.last-0.5 {
				early[logKey(l)]++
			}
		}
	}
	for i := range c.messages[x.flow.ID] {
		m := &c.messages[x.flow.ID][i]
		if m.From == s || m.Mode == machine.ModeInternal || m.Delivered != machine.Yes {
			continue
		}
		n := got[messageKey(m)]
		n.most += m.Deliveries
		if m.Certainty == machine.Certain {
			n.least += m.Deliveries
		}
		got[messageKey(m)] = n
	}
	denied, missing := 0, 0
	for k, n := range got {
		if k.id != relayedID {
			denied += max(n.least-want[k], 0)
		}
	}
	for k, n := range early {
		if near && k.id != relayedID {
			missing += max(n-got[k].most, 0)
		}
	}
	if denied > 0 {
		faults = append(faults, fmt.Sprintf("%s was handed %d messages for certain that its log has not", x.sides[s], denied))
	}
	if missing > 0 {
		faults = append(faults, fmt.Sprintf("%s was handed %d messages by its log, at the tap, that are not told",
			x.sides[s], missing))
	}
	if fault := ackFault(c, x, s); near && fault != "" {
		faults = append(faults, fault)
	}
	return faults
}

// ackFault compares which messages of a side at the tap were acked with its log; of
// messages that are passed on no log tells.
func ackFault(c *ripCapture, x *connection, s machine.Side) string {
	acked := map[int]bool{}
	for _, l := range x.lines[s] {
		if l.Event == "acked" {
			acked[l.Seq] = true
		}
	}
	wrong := 0
	for i := range c.messages[x.flow.ID] {
		m := &c.messages[x.flow.ID][i]
		if m.From != s || m.Mode != machine.ModeReliable || m.ID == relayedID || m.Acked == machine.Unanswered {
			continue
		}
		if acked[int(m.Sequence)] != (m.Acked == machine.Yes) {
			wrong++
		}
	}
	if wrong == 0 || len(acked) == 0 || strings.HasPrefix(c.name, "upy") || strings.HasPrefix(c.name, "tpy") {
		return "" // Pytide gives all messages one number
	}
	return fmt.Sprintf("%s: %d messages are told to be acked, or not, otherwise than its log has it", x.sides[s], wrong)
}

// lifeFaults compares the life of a connection, at the tap, with the log: nothing is
// missing, and nothing is certain that the log has not.
func lifeFaults(c *ripCapture, x *connection, s machine.Side) (faults []string) {
	want, got := c.life(x, s, machine.Likely)
	if missing := without(want, got); len(missing) > 0 {
		faults = append(faults, fmt.Sprintf("%s: %v of its log is not told", x.sides[s], missing))
	}
	want, got = c.life(x, s, machine.Certain)
	if extra := without(got, want); len(extra) > 0 {
		faults = append(faults, fmt.Sprintf("%s: %v is told as certain, and its log has it not", x.sides[s], extra))
	}
	return faults
}

// without returns what of a list another one has not as often.
func without(list, other []string) (rest []string) {
	count := map[string]int{}
	for _, word := range other {
		count[word]++
	}
	for _, word := range list {
		if count[word]--; count[word] < 0 {
			rest = append(rest, word)
		}
	}
	return rest
}

package realbuilds

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
)

var protocols = dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)

// saying is what Ackscope says of a capture.
type saying struct {
	facts    []fact
	findings map[string]bool              // all rules
	errors   map[string]machine.Certainty // rules of findings that say that an endpoint's code is wrong
	replayed *replay.File
}

// fact is an event, with its flow.
type fact struct {
	flow *analyze.Flow
	machine.Event
}

// say analyzes and replays a capture, as the program does.
func say(t testing.TB, name string, p *tape) *saying {
	t.Helper()
	if err := p.Rewind(); err != nil {
		t.Fatal(err)
	}
	x := &saying{findings: map[string]bool{}, errors: map[string]machine.Certainty{}}
	o := analyze.Options{Registry: protocols}
	learned, err := analyze.Learn(p, o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	o.Survey = learned.Survey()
	o.Sink = func(r *analyze.Record) {
		for _, e := range r.Events {
			switch e.Kind {
			case machine.EventReceived, machine.EventAcked, machine.EventDuplicate:
				x.facts = append(x.facts, fact{r.Flow, e})
			}
		}
	}
	session, err := analyze.Run(p, o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, f := range session.Flows() {
		for _, found := range f.Findings() {
			x.findings[found.Rule.ID] = true
			if found.Rule.Severity == machine.Error && found.Certainty > machine.Possible {
				x.errors[found.Rule.ID] = max(x.errors[found.Rule.ID], found.Certainty)
			}
		}
	}
	if err := p.Rewind(); err != nil {
		t.Fatal(err)
	}
	x.replayed, err = replay.Run(name, p, replay.Options{Analysis: analyze.Options{Registry: protocols}})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return x
}

// accusation is a divergence of one side.
type accusation struct {
	flow      int
	addr      string // of the side that is accused
	client    bool   // it is a client
	frame     uint64
	rule      string
	certainty machine.Certainty
	because   string
}

func (a accusation) String() string {
	return fmt.Sprintf("flow %d, %s, frame %d: %s, %v: %s", a.flow, a.addr, a.frame, a.rule, a.certainty, a.because)
}

// accused returns the divergences.
func (x *saying) accused() (list []accusation) {
	for i := range x.replayed.Results {
		r := &x.replayed.Results[i]
		if d := r.Divergence; d != nil {
			side := r.Flow.Addr(r.Side)
			list = append(list, accusation{
				flow: r.Flow.ID, addr: side.String(), client: isClient(side), frame: d.Ref.Frame(), rule: d.Rule.ID,
				certainty: r.Certainty(), because: d.Because,
			})
		}
	}
	return list
}

// decided counts the packets of a side that replay compared, and those of them
// that the capture settles.
func (x *saying) decided(s machine.Side) (compared, decided uint64) {
	for i := range x.replayed.Results {
		if r := &x.replayed.Results[i]; r.Side == s {
			compared += r.Compared
			decided += r.Compared - min(r.Undecided, r.Compared)
		}
	}
	return compared, decided
}

// isClient reports whether an address is a client's. The ports of all servers and
// of the relay's near side are 40000 and 40001.
func isClient(a netip.AddrPort) bool { return a.Port() != 40000 && a.Port() != 40001 }

func role(isClient bool) string {
	if isClient {
		return client
	}
	return server
}

// impossibleCounts returns a sentence where replay left more packets undecided
// than it compared.
func (x *saying) impossibleCounts() string {
	for i := range x.replayed.Results {
		if r := &x.replayed.Results[i]; r.Undecided > r.Compared {
			return fmt.Sprintf("%s: %d of %d packets could not be decided", r.Addr(), r.Undecided, r.Compared)
		}
	}
	return ""
}

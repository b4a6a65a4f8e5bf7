package judge_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// resendRun is one simulated flow between two endpoints that have the same resend policy.
type resendRun struct {
	policy string
	loss   float64
	delay  time.Duration // one way
	rate   int           // frames a second
	tap    machine.Vantage
	seed   uint64
	slip   messages.ResendSlip // of A
	set    bool                // the profile says a policy
	says   string              // which; empty for the right one
	budget int                 // most bytes of messages in a packet; 0: 1000
}

func (r *resendRun) String() string {
	return fmt.Sprintf("%s, loss %g, delay %v, %d frames a second, tap %s, seed %d, slip %d, set %v", r.policy, r.loss,
		r.delay, r.rate, r.tap, r.seed, r.slip, r.set)
}

// resendShown is what a capture of a run shows of one side.
type resendShown struct {
	found      *messages.ResendInference
	divergence *machine.Divergence
	notes      int // findings of early repeats
}

// run simulates the flow, and follows it twice as the program does.
func (r *resendRun) run(t *testing.T) (shown [2]resendShown) {
	t.Helper()
	policy, err := wire.ParseResend(r.policy)
	if err != nil {
		t.Fatal(err)
	}
	s := gaffertest.Soak{
		Profile: "article", Form: wire.MessagesByID, Messages: 4000, Seconds: 10,
		Path:  sim.Path{Delay: r.delay, Jitter: r.delay / 8, Loss: r.loss},
		Frame: time.Second / time.Duration(r.rate),
	}
	s.Options.Messages = &messages.Options{Resend: policy, SendBuffer: 256, ReceiveBuffer: 256, Budget: r.budget}
	if r.set {
		s.Resend = policy
		if r.says != "" {
			if s.Resend, err = wire.ParseResend(r.says); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r.slip != messages.ResendRight {
		s.Slips = [2]messages.ResendSlip{r.slip}
	}
	w, err := s.Build(r.seed, gaffertest.NewTally())
	if err != nil {
		t.Fatal(err)
	}
	var seen []machine.Datagram
	place := map[machine.Vantage]float64{machine.VantageA: 0, machine.VantageB: 1, machine.VantageBetween: 0.5}[r.tap]
	s.Link.Tap(place, func(x sim.Tapped) {
		seen = append(seen, machine.Datagram{
			At: x.At, Ref: machine.MakeRef(0, uint64(len(seen)+1)), From: machine.Side(x.From.Index), Bytes: x.Bytes,
			Length: len(x.Bytes),
		})
	})
	if err := w.Run(machine.Instant(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	o := s.Endpoint(machine.A)
	facts := machine.Facts{Vantage: r.tap, VantageReason: "told"}
	var out machine.Effects
	for pass := range 2 {
		tr := tracker.NewConversation(o.Profile, facts)
		for i := range seen {
			d := seen[i]
			out.Reset()
			tr.Observe(&d, &out)
			for _, a := range out.Anomalies {
				if a.Rule == messages.MessageResentEarly && pass == 1 {
					shown[a.Side].notes++
				}
			}
		}
		facts = tr.Learned()
	}
	j, err := judge.NewConversation(o.Profile, facts, [2]string{judge.BehaviourArticle, judge.BehaviourArticle})
	if err != nil {
		t.Fatal(err)
	}
	for i := range seen {
		j.Observe(&seen[i])
	}
	j.Finish()
	found := facts.Settings.(*messages.ResendInferences)
	for i := range shown {
		shown[i].found, shown[i].divergence = found[i], j.Opinion(machine.Side(i)).Divergence
	}
	return shown
}

// verdicts on what was inferred of one side.
const (
	resendNamed   = "named"   // the first policy is of the right form, and the right one is within its bounds
	resendListed  = "listed"  // the right one is within the bounds of another policy that agrees
	resendUnknown = "unknown" // nothing is named
	resendWrong   = "wrong"
)

// verdict compares what was inferred with the policy that the side had. The bounds are
// those that the program prints. A capture without second repeats shows no more of a
// back-off than its first wait.
func verdict(p *messages.ResendInference, policy wire.Resend) string {
	if p.Certainty() == machine.Unknown || p.Young && policy.Policy == wire.ResendRTT {
		return resendUnknown // the waits before there is an RTT are another policy's
	}
	for i := range p.Forms {
		f := &p.Forms[i]
		within := f.Least <= policy.After && policy.After <= f.Most
		grows := f.TimesLeast <= policy.Times && policy.Times <= f.TimesMost
		ok := false
		switch {
		case policy.Policy == wire.ResendBackoff && f.Resend.Policy == wire.ResendFixed:
			ok = within && p.Levels < 2
		case policy.Policy != f.Resend.Policy:
		case policy.Policy == wire.ResendFixed:
			ok = within
		case policy.Policy == wire.ResendRTT:
			ok = grows
		default:
			ok = within && grows && (f.Resend.Most == 0 || f.Resend.Most >= policy.Most/2)
		}
		switch {
		case ok && i == 0:
			return resendNamed
		case ok:
			return resendListed
		}
	}
	return resendWrong
}

var resendPolicies = []string{
	"50ms", "100ms", "200ms", "1rtt", "1.5rtt", "2rtt", "backoff(100ms, x2, 1s)", "backoff(50ms, x1.5, 400ms)",
}

// TestResendPolicies simulates endpoints with several policies, and compares what a
// capture shows of their policy with the truth. No side of them diverges. `make resend`
// runs the whole grid and holds the table of docs/resend.md.
func TestResendPolicies(t *testing.T) {
	mode := os.Getenv("ACKSCOPE_RESEND")
	grid := mode != ""
	rng := rand.New(rand.NewPCG(1, 2))
	vantages := []machine.Vantage{machine.VantageA, machine.VantageBetween}
	var table strings.Builder
	fmt.Fprintf(&table, "%-28s%8s  %-26s%-26s%s\n", "policy", "flows", "at the sender", "away from the sender",
		"diverge")
	fmt.Fprintf(&table, "%36s  %s%s\n", "", "named  listed  unknown   ", "named  listed  unknown")
	for _, text := range resendPolicies {
		policy, _ := wire.ParseResend(text)
		var counts [2]map[string]int
		counts[0], counts[1] = map[string]int{}, map[string]int{}
		flows, diverge := 0, 0
		for _, loss := range []float64{0, 0.05, 0.15, 0.3} {
			for _, delay := range []int{5, 20, 50, 100} {
				for _, rate := range []int{10, 20, 30, 60, 128} {
					for _, tap := range vantages {
						if !grid && rng.IntN(32) > 0 {
							continue
						}
						r := resendRun{
							policy: text, loss: loss, delay: time.Duration(delay) * time.Millisecond, rate: rate,
							tap: tap, seed: rng.Uint64(),
						}
						flows++
						for side, x := range r.run(t) {
							near := tap.Near(machine.Side(side))
							away := 1
							if near {
								away = 0
							}
							v := verdict(x.found, policy)
							counts[away][v]++
							if v == resendWrong {
								t.Errorf("%s: side %s: %d repeats, levels %d, %s", &r, machine.Side(side), x.found.Repeats,
									x.found.Levels, formsOf(x.found))
							}
							if x.divergence != nil {
								diverge++
								t.Errorf("%s: side %s is right and diverges: %s: %s", &r, machine.Side(side), x.divergence.Rule,
									x.divergence.Because)
							}
							if x.notes > 0 {
								t.Errorf("%s: side %s: %d notes of early repeats", &r, machine.Side(side), x.notes)
							}
						}
					}
				}
			}
		}
		fmt.Fprintf(&table, "%-28s%8d", text, flows)
		for _, n := range counts {
			fmt.Fprintf(&table, "  %5d  %6d  %7d ", n[resendNamed], n[resendListed], n[resendUnknown])
		}
		fmt.Fprintf(&table, "  %7d\n", diverge)
	}
	table.WriteByte('\n')
	resendFaults(t, &table, grid)
	t.Logf("\n%s", table.String())
	if grid && !t.Failed() {
		testenv.HoldTable(t, filepath.Join(testenv.Module(t), "docs", "resend.md"), "make resend", []byte(table.String()),
			mode == "update")
	}
}

// resendFaults plants a fault in one message in twenty of A, at the tap. It compares how
// often the fault is found with the policy set and without.
func resendFaults(t *testing.T, table *strings.Builder, grid bool) {
	rng := rand.New(rand.NewPCG(3, 4))
	fmt.Fprintf(table, "%-28s%8s  %-22s%s\n", "fault of one message in 20", "flows", "found: policy set",
		"policy inferred")
	for _, fault := range []struct {
		slip messages.ResendSlip
		name string
		rule *machine.Rule
	}{
		{messages.ResendEarly, "after half the time", judge.MessageResentEarly},
		{messages.ResendNever, "never sent again", judge.MessageResentLate},
		{messages.ResendStorm, "in every packet", judge.MessageResentEarly},
	} {
		flows := 0
		var found [2]int
		for _, text := range resendPolicies {
			for _, loss := range []float64{0.05, 0.15, 0.3} {
				for _, delay := range []int{20, 50, 100} {
					for _, rate := range []int{30, 60, 128} {
						if !grid && rng.IntN(20) > 0 {
							continue
						}
						r := resendRun{
							policy: text, loss: loss, delay: time.Duration(delay) * time.Millisecond, rate: rate,
							tap: machine.VantageA, seed: rng.Uint64(), slip: fault.slip,
						}
						flows++
						for i := range found {
							r.set = i == 0
							shown := r.run(t)
							if v := shown[machine.B].divergence; v != nil {
								t.Errorf("%s: the right side diverges: %s: %s", &r, v.Rule, v.Because)
							}
							v := shown[machine.A].divergence
							if v == nil {
								continue
							}
							if found[i]++; v.Rule != fault.rule || (v.Inferred == "") != r.set {
								t.Errorf("%s: %s, inferred %q, expected %s", &r, v.Rule, v.Inferred, fault.rule)
							}
						}
					}
				}
			}
		}
		fmt.Fprintf(table, "%-28s%8d  %17d %19d\n", fault.name, flows, found[0], found[1])
		if found[0] == 0 || 10*found[1] < 7*found[0] {
			t.Errorf("%s: found in %d of %d flows with the policy set, and in %d without", fault.name, found[0], flows, found[1])
		}
	}
}

// TestResendFullPackets: packets are often full, so messages that are due have to wait.
// That is no other policy, and no divergence.
func TestResendFullPackets(t *testing.T) {
	full := 0
	for _, text := range resendPolicies {
		policy, _ := wire.ParseResend(text)
		for seed := range uint64(4) {
			r := resendRun{
				policy: text, loss: 0.1, delay: 40 * time.Millisecond, rate: 60, tap: machine.VantageA, seed: seed, budget: 60,
			}
			x := r.run(t)[machine.A]
			if verdict(x.found, policy) == resendWrong || x.divergence != nil || x.notes > 0 {
				t.Errorf("%s: %s; diverges %v, %d notes", &r, formsOf(x.found), x.divergence, x.notes)
			}
			full += int(x.found.Repeats)
		}
	}
	if full < 1000 {
		t.Errorf("%d repeats: too few to say anything", full)
	}
}

// TestResendSet: endpoints conform with each policy if the profile says it, and diverge if
// it says another one.
func TestResendSet(t *testing.T) {
	for _, text := range resendPolicies {
		r := resendRun{
			policy: text, loss: 0.2, delay: 40 * time.Millisecond, rate: 60, tap: machine.VantageA, seed: 7, set: true,
		}
		for side, x := range r.run(t) {
			if v := x.divergence; v != nil || x.notes > 0 {
				t.Errorf("%s: side %s: %v, %d notes", &r, machine.Side(side), v, x.notes)
			}
		}
	}
	for _, c := range []struct {
		policy, says string
		rule         *machine.Rule
	}{
		{"50ms", "100ms", judge.MessageResentEarly},
		{"200ms", "100ms", judge.MessageResentLate},
		{"1rtt", "2rtt", judge.MessageResentEarly},
		{"3rtt", "1.5rtt", judge.MessageResentLate},
		{"100ms", "backoff(100ms, x2, 1s)", judge.MessageResentEarly},
		{"backoff(100ms, x3)", "backoff(100ms, x2, 1s)", judge.MessageResentLate},
	} {
		r := resendRun{
			policy: c.policy, says: c.says, loss: 0.2, delay: 40 * time.Millisecond, rate: 60, tap: machine.VantageA, seed: 7,
			set: true,
		}
		shown := r.run(t)
		if v := shown[machine.A].divergence; v == nil || v.Rule != c.rule || v.Inferred != "" {
			t.Errorf("%s and the profile says %s: %v, expected %s", c.policy, c.says, v, c.rule)
		}
		if early := c.rule == judge.MessageResentEarly; early != (shown[machine.A].notes > 0) {
			t.Errorf("%s and the profile says %s: %d notes of early repeats", c.policy, c.says, shown[machine.A].notes)
		}
	}
}

func formsOf(p *messages.ResendInference) string {
	var list []string
	for i := range p.Forms {
		f := &p.Forms[i]
		list = append(list, fmt.Sprintf("%v (%s, %s)", f.Resend, f.Bounds(), f.Why()))
	}
	return strings.Join(list, "; ")
}

package gaffer

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	machinenetcode "github.com/ackscope/ackscope/machine/gaffer/netcode"
)

// clearRun tracks every flow of a capture without keys.
func clearRun(t *testing.T, r *yojimboRun, at string) (flows []machine.Tracker, effects []machine.Effects) {
	t.Helper()
	profile := netcodeProfile(t)
	var out machine.Effects
	for _, d := range r.tap(t, at) {
		if d.flow == len(flows) {
			flows = append(flows, machinenetcode.NewTracker(profile, machine.Facts{}))
			effects = append(effects, machine.Effects{})
		}
		out.Reset()
		flows[d.flow].Observe(&d.Datagram, &out)
		if out.NewSession {
			t.Fatalf("%s.%s frame %d: taken for a new session", r.name, at, d.Ref.Frame())
		}
		e := &effects[d.flow]
		e.Events = append(e.Events, out.Events...)
		e.Anomalies = append(e.Anomalies, out.Anomalies...)
	}
	for i := range flows {
		out.Reset()
		flows[i].Finish(&out)
		effects[i].Anomalies = append(effects[i].Anomalies, out.Anomalies...)
	}
	return flows, effects
}

func countRule(e *machine.Effects, rule string) (n int, worst float64) {
	for _, a := range e.Anomalies {
		if a.Rule.ID == rule {
			n++
			worst = max(worst, a.Figures[0])
		}
	}
	return n, worst
}

// TestNetcodeLossEqualsLog: without keys, the counters at the far tap miss exactly what
// the relay dropped. At the sender's own tap nothing is missing.
func TestNetcodeLossEqualsLog(t *testing.T) {
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		// Drops by the endpoint that did not get them: all, and those without disconnects.
		// The last disconnects leave no gap behind them.
		dropped, inside := map[string]int{}, map[string]int{}
		for _, l := range r.lines {
			if l.Event == "dropped" {
				to := map[string]string{"c2s": "server", "s2c": "client"}[l.Dir]
				dropped[to]++
				if l.Head[1] != '6' {
					inside[to]++
				}
			}
		}
		for _, at := range []string{"client", "server"} {
			flows, effects := clearRun(t, r, at)
			var missing, packets [2]int
			for i, f := range flows {
				for _, x := range []machine.Side{machine.A, machine.B} {
					s := f.Summary(x)
					missing[x.Other()] += int(s.Missing)
					packets[x] += int(s.Packets)
				}
				if n, _ := countRule(&effects[i], "netcode-nonce-reuse"); n != 0 {
					t.Errorf("%s.%s flow %d: %d nonces reused", name, at, i, n)
				}
				if n, _ := countRule(&effects[i], "malformed"); n != 0 {
					t.Errorf("%s.%s flow %d: %d malformed", name, at, i, n)
				}
			}
			// A speaks first: the client.
			near, far := machine.A, machine.B
			if at == "server" {
				near, far = far, near
			}
			if missing[near] != 0 {
				t.Errorf("%s.%s: %d datagrams of the endpoint at the tap are missing", name, at, missing[near])
			}
			if missing[far] > dropped[at] || missing[far] < inside[at]-1 {
				t.Errorf("%s.%s: %d datagrams of the far side are missing, the log has %d dropped, %d of them no disconnects", name,
					at, missing[far], dropped[at], inside[at])
			}
			if packets[0] < 90 || packets[1] < 90 {
				t.Errorf("%s.%s: %v packets", name, at, packets)
			}
		}
	}
}

// TestNetcodeEndsTold: without keys, refusals, silence and copies are reported where
// they happened, and nowhere else.
func TestNetcodeEndsTold(t *testing.T) {
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		for _, at := range []string{"client", "server"} {
			_, effects := clearRun(t, r, at)
			var denied, silent, timeouts, copies, tokens int
			for i := range effects {
				d, _ := countRule(&effects[i], "netcode-denied")
				s, requests := countRule(&effects[i], "netcode-no-answer")
				o, _ := countRule(&effects[i], "netcode-timeout")
				c, _ := countRule(&effects[i], "netcode-duplicate")
				k, _ := countRule(&effects[i], "netcode-token-reuse")
				denied, silent, timeouts, copies, tokens = denied+d, silent+s, timeouts+o, copies+c, tokens+k
				if s > 0 && requests < 20 {
					t.Errorf("%s.%s: silence met %.0f requests", name, at, requests)
				}
			}
			wantDenied, wantSilent := 0, 0
			switch name {
			case "yojimbo-denied-full":
				wantDenied = 2
			case "yojimbo-wrong-key":
				wantSilent = 1
			}
			if denied != wantDenied || silent != wantSilent || timeouts != 0 || tokens != 0 {
				t.Errorf("%s.%s: %d denied, %d met with silence, %d timeouts, %d tokens used again", name, at, denied, silent,
					timeouts, tokens)
			}
			if (copies > 0) != (name == "yojimbo-two-clients") {
				t.Errorf("%s.%s: %d copies", name, at, copies)
			}
		}
	}
}

// The steps of the handshake are reported as events, in order.
func TestNetcodeLadder(t *testing.T) {
	r := readYojimboRun(t, "yojimbo-server-kick")
	flows, effects := clearRun(t, r, "client")
	var words []string
	for _, e := range effects[0].Events {
		if w := gaffer.EventNames[e.Kind]; w != "" && (len(words) == 0 || words[len(words)-1] != w) {
			words = append(words, w)
		}
	}
	want := []string{"connection-request", "challenge", "response", "keep-alive", "disconnect"}
	if len(words) < 5 || words[0] != want[0] || words[1] != want[1] || words[2] != want[2] || words[3] != want[3] ||
		words[len(words)-1] != want[4] {
		t.Errorf("the rungs are %v, expected %v", words, want)
	}
	var v machine.View
	flows[0].Inspect(machine.A, &v)
	if len(v.Tables) != 1 || len(v.Tables[0].Rows) < 5 {
		t.Errorf("the handshake's table is %+v", v.Tables)
	}
}

package truth

import (
	"fmt"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// srdpScenes lists the scenes of SRDP, of which no recorded capture has a log.
func srdpScenes(t *testing.T) (list []*scene) {
	dir := t.TempDir()
	calls := []string{
		"--services any --repeats 0-4", "--services order --timeout 130ms",
		"--services dont-duplicate --repeats 3 --event-clock", "--services any --give-up 2s",
	}
	forms := []string{"srdp", "srdp:proxied", "srdp:direct-le"}
	networks(func(n int, tap, flags string) {
		flags += " --duration 8s --protocol " + forms[n%len(forms)] + " " + calls[n%len(calls)]
		if n%3 == 1 {
			flags += " --clients 3"
		}
		if n%4 == 2 {
			flags += " --first 32700/9"
		}
		run := simulated(t, dir, flags)
		list = append(list, srdpScene(t, flags, tap, run))
		if n%3 == 0 {
			s := srdpScene(t, flags+", joined", "", run.joined(t))
			s.check = asBefore(s) // of a packet the log counts the copies from its first on
			list = append(list, s)
		}
		list = append(list, variants(t, n, flags, run, registryOf())...)
	})
	// Applications that look at their sockets once a frame, and seldom.
	for n := range 12 {
		tap := tapped[n%3]
		flags := fmt.Sprintf("--rate %s --delay %s --tap %s --seed %d --duration 8s --protocol srdp", rates[n%2],
			delays[1+n/2%3], tap, 300+n)
		list = append(list, srdpScene(t, flags, tap, simulated(t, dir, flags)))
	}
	// Ids that step far at once, wrap, and begin anew.
	for n, flags := range []string{
		"--rate 300 --outage 2s,4s --repeats 3 --services none", "--rate 200 --loss 40% --first 32000/500 --repeats 4",
		"--rate 300 --outage 1s,4s --first 31000 --repeats 2", "--rate 60 --loss 10% --clients 4 --first 32760",
	} {
		for k, tap := range []string{"a", "b", "between"} {
			flags := flags + fmt.Sprintf(" --tap %s --seed %d --duration 7s --protocol %s", tap, 100+3*n+k,
				forms[(n+k)%len(forms)])
			list = append(list, srdpScene(t, flags, tap, simulated(t, dir, flags)))
		}
	}
	return append(list, faulty(t, dir, "srdp")...)
}

// srdpScene returns the scene of a simulated run.
func srdpScene(t *testing.T, called, tap string, run simulation) *scene {
	t.Helper()
	lines, err := decode[srdpLine](run.log)
	if err != nil {
		t.Fatal(err)
	}
	return &scene{name: called, path: run.path, registry: registryOf(), check: func(c *ripCapture) []string {
		near := map[string]string{"a": "client", "b": "server"}[tap]
		if near == "" || !placed(c, standsAt(tap)) {
			near = "" // then what is certain is held, and no more
		}
		return checkSRDP(lines, srdpEventsOf(c), near)
	}}
}

// srdpEventsOf returns what the contract says of `events --json`.
func srdpEventsOf(c *ripCapture) (list []srdpEvent) {
	for _, f := range c.session.Flows() {
		if f.Protocol == nil {
			continue
		}
		own := &ripCapture{session: c.session, events: map[int][]machine.Event{f.ID: c.events[f.ID]}}
		for i, e := range eventsOf(own) {
			list = append(list, srdpEvent{
				Protocol: e.Protocol, Time: e.Time, Frame: e.Frame, Addr: e.Addr, Peer: e.Peer, Event: e.Event,
				Sequence64: c.events[f.ID][i].Sequence64, Certainty: e.Certainty,
			})
		}
	}
	return list
}

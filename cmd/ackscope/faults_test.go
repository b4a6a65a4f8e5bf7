package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/ackscope/ackscope/capture"
)

// An oracle says which frame of a view is the first that no correct endpoint can
// have sent; 0 where a correct one can have sent all. It knows nothing of the
// judges: it has the datagrams of the tap, the rule of the protocol that the
// fault breaks, and the truth of the run (where a right endpoint with the same
// inputs sends something else, and what it had read by then).
//
// What a correct endpoint is free to do: to send what it likes when it likes; to
// read its socket late, within a second; to look at its timers late, within a
// long frame. The network may lose, double, delay and reorder.
type oracle func(t *testing.T, v *view) (frame uint64)

const (
	// patience is how long a right endpoint leaves its socket unread, while it goes
	// on sending.
	patience = time.Second
	// readWithin is how much later than it came an answer may be read.
	readWithin = 500 * time.Millisecond
)

// oracles are those of a fault, for a tap at the endpoint and for one away from it.
type oracles struct{ near, away oracle }

// differs: each datagram follows from what the endpoint has read and from what its
// application asked for, so the first that is another one is wrong.
func differs(_ *testing.T, v *view) uint64 { return v.differs() }

// explained: a correct endpoint can always have sent the same.
func explained(*testing.T, *view) uint64 { return 0 }

// oraclesOf gives those of a fault.
func oraclesOf(x faultLine) oracles {
	known, usual := riptideOracles, oracles{}
	switch x.protocol {
	case "gaffer":
		known, usual = gafferOracles, oracles{acksNear, acksAway}
	case "srdp":
		known = srdpOracles
	}
	switch o, ok := known[x.name]; {
	case x.unobservable != "" || x.explained != "":
		return oracles{explained, explained}
	case ok:
		return o
	}
	return usual
}

// TestFaults runs every fault over seeds, losses and taps, and holds what replay
// says against what the oracles do. ACKSCOPE_FAULTS=1 (make faults) runs all and
// prints the table.
func TestFaults(t *testing.T) {
	full := os.Getenv("ACKSCOPE_FAULTS") != ""
	seeds, losses := []int{1}, []string{"5%"}
	if full {
		seeds, losses = []int{1, 2, 3, 4, 5}, []string{"0%", "5%", "20%"}
	} else if testing.Short() {
		t.Skip("one run of every fault, without -short")
	}
	a := &app{registry: protocols()}
	a.flags.profiles = []string{messagesFile}
	if err := a.loadProfiles(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "protocol\tfault\truns\tdiffers\tnear: none could\tfound\tbetween: none could\tfound\tfar: none could\tfound")
	for _, x := range faultLines() {
		if only := os.Getenv("ACKSCOPE_FAULT"); only != "" && !strings.Contains(x.protocol+" "+x.name, only) {
			continue
		}
		if !full && slices.Contains(x.scenario, "98%") {
			continue // ten seconds
		}
		n := faultCounts{}
		for _, seed := range seeds {
			for k, loss := range losses {
				if k > 0 && slices.Contains(x.scenario, "--loss") {
					break // the scenario has its own
				}
				runFault(t, a, dir, x, seed, loss).check(t, &n)
			}
		}
		switch {
		case x.unobservable != "":
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\tnever on the wire: %s\n", x.protocol, x.name, n.runs, n.differ, x.unobservable)
		case x.explained != "":
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\ta correct one could: %s\n", x.protocol, x.name, n.runs, n.differ, x.explained)
		default:
			fmt.Fprintf(w, "%s\t%s\t%d\t%d", x.protocol, x.name, n.runs, n.differ)
			for _, c := range n.taps {
				fmt.Fprintf(w, "\t%d\t%d", c.impossible, c.exact)
			}
			fmt.Fprintln(w)
		}
		if full && n.taps[tapNear].impossible == 0 && x.unobservable == "" && x.explained == "" {
			t.Errorf("%s %s: shows in none of its runs", x.protocol, x.name)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", table.String())
}

// faultCounts counts the runs of one fault.
type faultCounts struct {
	runs, differ int // differ: the faulty endpoint sent something else than a right one
	taps         [taps]struct{ impossible, exact int }
}

// check holds what replay says of a run against what can be known.
func (r *faultRun) check(t *testing.T, n *faultCounts) {
	t.Helper()
	n.runs++
	o := oraclesOf(r.line)
	if len(r.shadow.differs) > 0 {
		n.differ++
		if r.line.unobservable != "" {
			t.Errorf("%s: said never to reach the wire, and a right endpoint sends something else", r)
		}
	}
	for at := range r.paths {
		says := o.away
		if at == tapNear {
			says = o.near
		}
		found := r.replayed(t, at)
		impossible, exact := false, true
		for _, v := range r.views(at) {
			want, got := says(t, v), found[v.flow]
			if want > 0 {
				impossible = true
				if since, ok := v.since(); !ok || v.when(want) < since {
					t.Errorf("%s: tap at %s: the oracle has frame %d, where the endpoint was right still", r, r.place(at), want)
				}
			}
			if got.Frame != want {
				exact = false
				t.Errorf("%s: tap at %s, flow %d: %s %s at frame %d, expected frame %d (0: none); the first that differs is %d",
					r, r.place(at), v.flow, got.Verdict, got.Rule, got.Frame, want, v.differs())
			}
		}
		if impossible {
			n.taps[at].impossible++
			if exact {
				n.taps[at].exact++
			}
		}
	}
}

// sideOf gives what a capture of the run calls the endpoint of an address: the
// one that spoke first is a.
func sideOf(t *testing.T, path string, addr netip.Addr) string {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var f capture.Frame
	var p capture.Packet
	if err := in.Next(&f); err != nil {
		t.Fatal(err)
	}
	capture.NewDecoder(capture.DecodeOptions{}).Decode(&f, &p)
	if p.Src.Addr() == addr {
		return "a"
	}
	return "b"
}

package cli

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/about"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine/gaffer/article"
)

// An oracle returns the first frame of a view that no correct endpoint can have
// sent. It returns 0 if a correct endpoint can have sent all frames. It does
// not use the judges. It uses:
//
//   - the datagrams at the tap;
//   - the rule of the protocol that the fault breaks;
//   - the truth of the run: where a correct endpoint with the same inputs sends
//     something else, and what it had read by then.
//
// A correct endpoint may send what it likes when it likes. It may read its
// socket late, within a second. It may check its timers late, within a long
// frame. The network may lose, duplicate, delay and reorder.
type oracle func(t *testing.T, v *view) (frame uint64)

const (
	// patience is how long a correct endpoint may leave its socket unread while
	// it sends.
	patience = time.Second
	// readWithin is how long an answer may wait in the socket.
	readWithin = 500 * time.Millisecond
)

// oracles are the oracles of a fault, for a tap at the endpoint and for one
// away from it.
type oracles struct{ near, away oracle }

// differs: each datagram follows from what the endpoint has read and from the
// requests of its application. So the first different datagram is wrong.
func differs(_ *testing.T, v *view) uint64 { return v.differs() }

// explained: a correct endpoint can always have sent the same.
func explained(*testing.T, *view) uint64 { return 0 }

// firstOf returns an oracle of several rules: it returns the first frame that
// breaks one.
func firstOf(rules ...oracle) oracle {
	return func(t *testing.T, v *view) (frame uint64) {
		for _, rule := range rules {
			if f := rule(t, v); f > 0 && (frame == 0 || f < frame) {
				frame = f
			}
		}
		return frame
	}
}

// oraclesOf returns the oracles of a fault.
func oraclesOf(x faultOf) oracles {
	known, usual := riptideOracles, oracles{}
	switch x.protocol {
	case "gaffer":
		known, usual = gafferOracles, oracles{acksNear, acksAway}
		if article.LookupFault(x.Name) != nil {
			known = articleOracles
		}
	case "srdp":
		known = srdpOracles
	}
	switch o, ok := known[x.Name]; {
	case x.protocol == "notes" && x.Name == "timeout-ignored":
		// It resends its messages without end too, and in the notes' form each has
		// 15 copies.
		return oracles{firstOf(riptideSixteenth, riptideSilence), explained}
	case x.Unobservable != "" || x.Explained != "":
		return oracles{explained, explained}
	case ok:
		return o
	}
	return usual
}

// notesForm is the protocol of the notes' own form, as a scenario names it.
const notesForm = "riptide:notes"

// faultLines returns the lines of the table: each fault of each protocol, and then each Riptide fault in the notes'
// own form. A fault whose scenario is in that form has its line only there.
func faultLines() (lines []faultOf) {
	for _, x := range allFaults() {
		if !slices.Contains(x.Scenario, notesForm) {
			lines = append(lines, x)
		}
	}
	for _, x := range allFaults() {
		if x.protocol != "riptide" {
			continue
		}
		x.protocol = "notes"
		switch {
		case x.Name == "window-shift":
			x.Unobservable = "the notes' receiver has no list of ids"
		case strings.HasPrefix(x.Name, "notify-"):
			x.Unobservable = "the notes' Notify has no acks"
		}
		x.Scenario = slices.Clone(x.Scenario)
		if at := slices.Index(x.Scenario, "--protocol"); at >= 0 {
			x.Scenario[at+1] = notesForm
		}
		lines = append(lines, x)
	}
	return lines
}

// faultsPage contains the table of all faults.
const faultsPage = "../docs/faults.md"

// TestFaults runs every fault with several seeds, losses and taps, and compares
// replay's results with the oracles. Variables of the environment select runs:
//
//   - ACKSCOPE_FAULTS=1 (make faults) runs all, and compares the table in
//     docs/faults.md with the results;
//   - ACKSCOPE_FAULTS=update writes the table;
//   - ACKSCOPE_FAULT=PART runs the faults whose protocol and name contain PART.
func TestFaults(t *testing.T) {
	full, only := os.Getenv("ACKSCOPE_FAULTS"), os.Getenv("ACKSCOPE_FAULT")
	testenv.Grid(t, "a run of every fault")
	a := &app.App{Registry: protocols()}
	a.Flags.Profiles = []string{messagesFile, simpleFile, resendFile}
	if err := about.LoadProfiles(a); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// Every line has every cell: a missing cell would end the column.
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\t\t\t\tat the endpoint\t\tbetween\t\tfar\t\t")
	fmt.Fprintln(w, "protocol\tfault\truns\tdiffer\tnone could\tfound\tnone could\tfound\tnone could\tfound\t")
	for _, x := range faultLines() {
		if !strings.Contains(x.protocol+" "+x.Name, only) || full == "" && slices.Contains(x.Scenario, "98%") {
			continue // the latter takes ten seconds
		}
		n := faultCounts{}
		if full == "" {
			loss := "5%"
			if own := slices.Index(x.Scenario, "--loss"); own >= 0 {
				loss = x.Scenario[own+1]
			}
			runFault(t, a, dir, x, 1, loss).check(t, &n)
		} else {
			for seed := 1; seed <= 5; seed++ {
				for _, loss := range lossesOf(t, x) {
					runFault(t, a, dir, x, seed, loss).check(t, &n)
				}
			}
		}
		switch {
		case x.Unobservable != "":
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\tunobservable\t\t\t\t\t\t\n", x.protocol, x.Name, n.runs, n.differ)
			continue
		case x.Explained != "":
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\texplained\t\t\t\t\t\t\n", x.protocol, x.Name, n.runs, n.differ)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t", x.protocol, x.Name, n.runs, n.differ)
		for _, c := range n.taps {
			fmt.Fprintf(w, "%d\t%d\t", c.impossible, c.exact)
		}
		fmt.Fprintln(w)
		if full != "" && n.taps[tapNear].impossible == 0 {
			t.Errorf("%s %s: shows in none of its runs", x.protocol, x.Name)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	text := trailing.ReplaceAll(table.Bytes(), nil)
	t.Logf("\n%s", text)
	if full != "" && only == "" && !t.Failed() {
		testenv.HoldTable(t, faultsPage, "make faults", text, full == "update")
	}
}

// lossesOf returns three levels of loss, around the scenario's own level if it
// has one.
func lossesOf(t *testing.T, x faultOf) []string {
	t.Helper()
	own := slices.Index(x.Scenario, "--loss")
	if own < 0 {
		return []string{"0%", "5%", "20%"}
	}
	share, err := simulate.ParseShare(x.Scenario[own+1])
	if err != nil {
		t.Fatal(err)
	}
	apart := min(share, 1-share) / 2
	var list []string
	for _, p := range []float64{share - apart, share, share + apart} {
		list = append(list, fmt.Sprintf("%g%%", math.Round(p*1000)/10))
	}
	return list
}

var trailing = regexp.MustCompile(`(?m) +$`)

// faultCounts counts the runs of one fault.
type faultCounts struct {
	runs, differ int // differ: runs in which the faulty endpoint sent something else than a correct one
	taps         [taps]struct{ impossible, exact int }
}

// check compares replay's result of a run with the oracles.
func (r *faultRun) check(t *testing.T, n *faultCounts) {
	t.Helper()
	n.runs++
	o := oraclesOf(r.line)
	if len(r.shadow.differs) > 0 {
		n.differ++
		if r.line.Unobservable != "" {
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

// sideOf returns the side of an address in a capture of the run: the first
// sender is a.
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

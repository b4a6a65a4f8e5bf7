package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// notesGrid are the option sets of the notes' own form: every network with
// every ending, with and without Notify messages.
var (
	notesNetworks = []string{
		"",
		"--dup 10%",
		"--jitter 30ms",
		"--loss 5%",
		"--loss 10% --jitter 20ms --dup 5%",
		"--loss 30%",
		"--loss 20% --jitter 60ms --dup 10% --delay 60ms",
		"--loss 0% --outage 2s,900ms,3s --rate 30/60",
		"--burst 2%,20% --event-clock --messages 40",
		"--loss 2%/15% --delay 10ms --messages 60",
	}
	// the last one: by timeout
	notesEndings = []string{"--end leave", "--end kick", "--end stop", "--end none", "--end none --outage 3s,20s"}
	notesMixes   = []string{"50/30/20", "70/30/0"}
)

// notesRun is one run of the notes' form and what three taps saw of it.
type notesRun struct {
	args   []string
	stream bool
	quiet  bool // the network neither loses nor reorders
	stood  bool // the connection was established
	paths  [taps]string
	truth  []map[string]any
	pings  [taps]map[uint8]bool // ids of the client's heartbeats that passed a tap
	pongs  [taps]map[uint8]bool // ids of those whose answer passed
}

// notesTaps are the taps of a run, as values of --tap and --vantage.
var notesTaps = [taps]string{"a", "between", "b"}

// runNotes simulates one option set in this process.
func runNotes(t *testing.T, dir, protocol, options string, seed int) *notesRun {
	t.Helper()
	r := &notesRun{stream: strings.HasSuffix(protocol, ":tcp")}
	r.quiet = !regexp.MustCompile("--(loss|outage|burst|jitter)").MatchString(options)
	r.args = append([]string{"--protocol", protocol, "--seed", strconv.Itoa(seed), "--duration", "7s"},
		strings.Fields(options)...)
	if strings.Contains(options, "20s") {
		r.args = append(r.args, "--duration", "11s")
	}
	flags := simulationFlags(t, r.args...)
	a := &app.App{Registry: protocols()}
	s, err := simulate.NewSimulation(a, known.Simulators(), &flags)
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	var lines bytes.Buffer
	endLog := s.LogTo(sim.NewLog(&lines, simulate.Epoch))
	var closers []func() error
	for at, place := range notesTaps {
		r.paths[at] = filepath.Join(dir, place+".pcapng")
		s.Flags.Write, s.Flags.Tap = r.paths[at], place
		closers = append(closers, tapFile(t, s))
		r.pings[at], r.pongs[at] = map[uint8]bool{}, map[uint8]bool{}
		if !r.stream {
			s.Links[0].Tap(float64(at)/2, func(seen sim.Tapped) { r.sees(at, seen.From == s.Links[0].A, seen.Bytes) })
		}
	}
	if err := s.World.Run(machine.Instant(flags.Duration + time.Second)); err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	for _, c := range closers {
		if err := c(); err != nil {
			t.Fatalf("%s: %v", r, err)
		}
	}
	if err := endLog(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(lines.String()) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		r.truth = append(r.truth, o)
	}
	r.stood = r.happened("client1", "connected", 0)
	return r
}

// sees counts heartbeats by their sender, which the simulation knows.
func (r *notesRun) sees(at int, client bool, b []byte) {
	var m wire.Message
	if (wire.Codec{Dialect: wire.Notes}).Parse(b, len(b), &m) != nil || m.Type != wire.Heartbeat {
		return
	}
	switch {
	case client:
		r.pings[at][m.Ping] = true
	case r.pings[at][m.Ping]:
		r.pongs[at][m.Ping] = true
	}
}

func (r *notesRun) String() string { return "simulate " + strings.Join(r.args, " ") }

// asks runs a command of the program on a capture, and returns its lines.
func (r *notesRun) asks(t *testing.T, args ...string) []map[string]any {
	t.Helper()
	var out, trouble bytes.Buffer
	if code := runKnown(args, app.Streams{Out: &out, Err: &trouble}); code > 1 {
		t.Fatalf("%s: %v: exit %d: %s", r, args, code, trouble.String())
	}
	var list []map[string]any
	for line := range strings.Lines(out.String()) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %v: %s", args, err, line)
		}
		list = append(list, o)
	}
	return list
}

// notesCounts counts the sides of the runs of one network.
type notesCounts struct{ runs, near, conforms, far, consistent, diverges int }

func (n *notesCounts) count(near bool, verdict string) {
	switch {
	case near:
		n.near++
	default:
		n.far++
	}
	switch {
	case verdict == "diverges":
		n.diverges++
	case near && verdict == "conforms":
		n.conforms++
	case !near:
		n.consistent++
	}
}

// judge replays the capture of each tap twice: with the known position of the
// tap, and without.
func (r *notesRun) judge(t *testing.T, n *notesCounts) {
	t.Helper()
	n.runs++
	for at, vantage := range notesTaps {
		for _, placed := range []bool{true, false} {
			if !placed && at == tapBetween {
				continue // half way, with an even delay, both sides look alike: no dialect is found
			}
			args := []string{"replay", "--json", "-q", r.paths[at]}
			if placed {
				args = append(args, "--vantage", vantage)
			}
			sides := r.asks(t, args...)
			if r.stood && len(sides) != 2 {
				t.Errorf("%s: tap %s: %d sides were judged, expected 2", r, vantage, len(sides))
			}
			for _, o := range sides {
				verdict, side := o["verdict"].(string), o["side"].(string)
				// A connection that was never established does not distinguish the
				// notes' form from dialect 2.1-dev-n.
				if r.stood && o["behaviour"] != "riptide@notes" {
					t.Errorf("%s: tap %s: side %s is held against %v", r, vantage, side, o["behaviour"])
				}
				near := side == vantage
				if placed {
					n.count(near, verdict)
				}
				if verdict == "diverges" || placed && near && verdict != "conforms" {
					t.Errorf("%s: tap %s (placed %v): side %s %s: %v at frame %v: %v expected %v, got %v: %v",
						r, vantage, placed, side, verdict, o["rule"], o["first_frame"], o["field"], o["expected"], o["got"], o["why"])
				}
			}
		}
	}
}

var heartbeatsRow = regexp.MustCompile(`heartbeats +(\d+), answered (\d+)`)

// hold compares the state, the findings and the events of the connection with
// the truth.
func (r *notesRun) hold(t *testing.T) {
	t.Helper()
	if !r.stood {
		return
	}
	for at, vantage := range notesTaps {
		var out, trouble bytes.Buffer
		if code := runKnown([]string{"state", "--vantage", vantage, r.paths[at]},
			app.Streams{Out: &out, Err: &trouble}); code != 0 {
			t.Fatalf("%s: exit %d: %s", r, code, trouble.String())
		}
		if r.stood && strings.Contains(out.String(), "outstanding") {
			t.Errorf("%s: tap %s: the Welcome is outstanding, and the notes have no answer to it", r, vantage)
		}
		row := heartbeatsRow.FindStringSubmatch(out.String())
		if want := []string{strconv.Itoa(len(r.pings[at])), strconv.Itoa(len(r.pongs[at]))}; !r.stream && want[0] != "0" &&
			(row == nil || row[1] != want[0] || row[2] != want[1]) {
			t.Errorf("%s: tap %s: state has %q, expected %s heartbeats, answered %s", r, vantage, row, want[0], want[1])
		}
		for _, o := range r.asks(t, "findings", "--json", "--vantage", vantage, r.paths[at]) {
			rule, severity := o["rule"], o["severity"]
			if r.quiet && (severity == "warn" || severity == "error" || rule == "riptide-heartbeat-unanswered") {
				t.Errorf("%s: tap %s: nothing is wrong, and there is a finding: %v %v: %v", r, vantage, severity, rule,
					o["message"])
			}
		}
		for _, o := range r.asks(t, "events", "--json", "--vantage", vantage, r.paths[at]) {
			word, host := o["event"], "client1"
			if o["addr"] == simulate.Addrs[1].String() {
				host = "server"
			}
			if o["certainty"] == "certain" && (word == "connected" || word == "disconnected") &&
				!r.happened(host, word.(string), o["sequence"].(float64)) {
				t.Errorf("%s: tap %s: %s is certain to be %s (%v) by frame %v, and is not", r, vantage, host, word,
					o["sequence"], o["frame"])
			}
		}
	}
}

// happened reports whether an endpoint reported an event to its application.
func (r *notesRun) happened(host, word string, number float64) bool {
	for _, o := range r.truth {
		if o["endpoint"] == host && o["event"] == word && (word != "disconnected" || o["reason_code"] == number) {
			return true
		}
	}
	return false
}

// notesPage contains the table of all runs.
const notesPage = "../docs/replay.md"

// TestNotesForm runs the reference in the notes' own form, over UDP and TCP.
// Replay finds that it conforms at the tap, and is consistent away from it.
// State, findings and events agree with what the endpoints did. Every run has
// another option set.
//
// ACKSCOPE_NOTES=1 (make notes) runs all option sets and compares the table in
// docs/replay.md with the results. ACKSCOPE_NOTES=update writes the table.
func TestNotesForm(t *testing.T) {
	testenv.Grid(t, "networks, endings and taps by the dozen")
	full := os.Getenv("ACKSCOPE_NOTES") != ""
	const every = 5
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\t\t\tat the tap\t\taway\t\t\t")
	fmt.Fprintln(w, "over\tnetwork\truns\tsides\tconform\tsides\tconsistent\tdiverge\t")
	dir, set := t.TempDir(), 0
	for half, networks := range [][]string{notesNetworks[:9], notesNetworks[:9], notesNetworks[9:], notesNetworks[9:]} {
		transport, protocol := "udp", "riptide:notes"
		if half%2 == 1 {
			transport, protocol = "tcp", "riptide:notes:tcp"
		}
		for _, network := range networks {
			n := notesCounts{}
			for _, ending := range notesEndings {
				for _, mix := range notesMixes {
					if set++; !full && set%every != 0 {
						continue
					}
					r := runNotes(t, dir, protocol, strings.TrimSpace(network+" "+ending+" --mix "+mix), set)
					r.judge(t, &n)
					r.hold(t)
				}
			}
			if network == "" {
				network = "no fault"
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", transport, network, n.runs, n.near, n.conforms, n.far,
				n.consistent, n.diverges)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	text := trailing.ReplaceAll(table.Bytes(), nil)
	t.Logf("\n%s", text)
	if full && !t.Failed() {
		testenv.HoldTable(t, notesPage, "make notes", text, os.Getenv("ACKSCOPE_NOTES") == "update")
	}
}

// TestNotesMatrix runs the reference in the notes' own form, correct and then with each part of it that release 2.0.0
// does in another way. `replay --matrix` tells the two behaviours apart at the tap, and claims nothing away from it.
func TestNotesMatrix(t *testing.T) {
	dir := t.TempDir()
	for _, x := range []struct{ fault, network string }{
		{"newest-stays", "--messages 100 --delay 150ms --outage 3s,400ms,2s"},
		{"older-ack-one-bit", "--messages 60 --delay 60ms --jitter 60ms --loss 20%"},
	} {
		for _, fits := range []string{"riptide@notes", "riptide@2.0"} {
			options := x.network + " --mix 100/0/0"
			if fits != "riptide@notes" {
				options += " --fault " + x.fault
			}
			r := runNotes(t, dir, notesForm, options, 1)
			found := map[string]string{}
			for _, o := range r.asks(t, "replay", "--json", "-q", "--matrix", "--vantage", "a", r.paths[tapNear]) {
				found[o["side"].(string)+" "+o["behaviour"].(string)] = o["verdict"].(string)
			}
			for _, name := range []string{"riptide@notes", "riptide@2.0"} {
				want := "diverges"
				if name == fits {
					want = "conforms"
				}
				if found["a "+name] != want || found["b "+name] != "consistent" {
					t.Errorf("%s: %s: side a %s and side b %s, expected %s and consistent", r, name, found["a "+name],
						found["b "+name], want)
				}
			}
		}
	}
}

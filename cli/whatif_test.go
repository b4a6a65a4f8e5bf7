package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/cli/about"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/replay/whatif"
	"github.com/ackscope/ackscope/sim"
)

// whatIfGame is a game with messages.
const whatIfGame = `
protocol: gaffer
name: game
base: article
settings:
  messages: {form: by-id, types: 2, max_per_packet: 32, send_queue: 1024, receive_queue: 256}
  schema:
    messages:
      0: {name: Move, fields: [{name: x, type: int, min: -1000, max: 1000}, {name: jump, type: bool}]}
      1: {name: Chat, fields: [{name: text, type: string, max: 24}]}
`

// whatIfGames are that game and variants of it: one with a smaller window, one
// with fewer acks in its headers.
var whatIfGames = map[string]string{
	"gaffer:game": whatIfGame,
	"gaffer:narrow": strings.NewReplacer("name: game", "name: narrow", "receive_queue: 256",
		"receive_queue: 16").Replace(whatIfGame),
	"gaffer:few": strings.NewReplacer("name: game", "name: few", "settings:",
		"settings:\n  header: [{field: sequence, bits: 16}, {field: ack, bits: 16}, {field: ack_bits, bits: 16}]").Replace(
		whatIfGame),
}

// whatIfRun is a captured simulation with its truth: how long each reliable
// message took, by the sender's host.
type whatIfRun struct {
	path    string
	truth   map[string][]time.Duration
	resends map[string]int
	sent    map[string]int // bytes
}

// simulateMessages runs a simulation and records when each message was
// submitted and delivered.
func simulateMessages(t *testing.T, dir, flags string) whatIfRun {
	t.Helper()
	f := simulationFlags(t, strings.Fields(flags)...)
	profile := filepath.Join(dir, "game.yaml")
	if err := os.WriteFile(profile, []byte(cmp.Or(whatIfGames[f.Protocol], whatIfGame)), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &app.App{Streams: app.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, Registry: protocols()}
	a.Flags.Profiles = []string{profile}
	if err := about.LoadProfiles(a); err != nil {
		t.Fatal(err)
	}
	f.Write = filepath.Join(dir, "run.pcapng")
	s, err := simulate.NewSimulation(a, known.Simulators(), &f)
	if err != nil {
		t.Fatal(err)
	}
	type key struct {
		host    *sim.Host
		channel uint8
		id      uint16
	}
	submitted := map[key]machine.Instant{}
	count := map[*sim.Host]uint16{} // of Gaffer's messages, whose ids begin at 0
	x := whatIfRun{path: f.Write, truth: map[string][]time.Duration{}, resends: map[string]int{}, sent: map[string]int{}}
	other := func(h *sim.Host) *sim.Host { return s.World.Hosts()[1-h.Index] }
	s.World.Watch(func(step *sim.Step) {
		if in, ok := step.In.(machine.Submit); ok && strings.HasPrefix(f.Protocol, "gaffer") &&
			in.Channel == messages.ChannelMessage {
			submitted[key{step.Host, in.Channel, count[step.Host]}] = step.At
			count[step.Host]++
		}
		for _, e := range step.Out.Events {
			switch e.Kind {
			case machine.EventSent:
				if !strings.HasPrefix(f.Protocol, "gaffer") {
					submitted[key{step.Host, e.Channel, uint16(e.Sequence)}] = step.At
				}
			case machine.EventResent:
				x.resends[s.Addrs[step.Host.Index].Addr().String()]++
			default:
			}
		}
		for _, d := range step.Out.Transmit {
			x.sent[s.Addrs[step.Host.Index].Addr().String()] += len(d.Bytes)
		}
		for _, d := range step.Out.Deliver {
			from := other(step.Host)
			k := key{from, d.Channel, uint16(d.ID)}
			if at, ok := submitted[k]; ok {
				host := s.Addrs[from.Index].Addr().String()
				x.truth[host] = append(x.truth[host], step.At.Sub(at))
				delete(submitted, k)
			}
		}
	})
	end := tapFile(t, s)
	if err := s.World.Run(machine.Instant(f.Duration + time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	for _, l := range x.truth {
		slices.Sort(l)
	}
	return x
}

// whatIfObject is the part of replay --what-if --json that the test reads.
type whatIfObject struct {
	Addr      string         `json:"addr"`
	Original  whatIfFigures  `json:"original"`
	Rehearsal whatIfFigures  `json:"rehearsal"`
	Estimate  whatIfFigures  `json:"estimate"`
	Settings  []whatIfValued `json:"settings"`
	Fit       float64        `json:"fit"`
	Certainty string         `json:"certainty"`
}

type whatIfValued struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

type whatIfFigures struct {
	Packets   float64 `json:"packets"`
	Bytes     float64 `json:"bytes"`
	Resends   float64 `json:"resends"`
	Delivered int     `json:"delivered"`
	P50       float64 `json:"latency_ms_p50"`
	P95       float64 `json:"latency_ms_p95"`
}

// whatIfOf runs the command and returns its results by host.
func whatIfOf(t *testing.T, x whatIfRun, change string) map[string]whatIfObject {
	t.Helper()
	profile := filepath.Join(filepath.Dir(x.path), "game.yaml")
	var out, trouble bytes.Buffer
	args := []string{"replay", "--profiles", profile, "--json", "--what-if", change, x.path}
	if code := runKnown(args, app.Streams{Out: &out, Err: &trouble}); code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, trouble.String())
	}
	hosts := map[string]whatIfObject{}
	for line := range strings.Lines(out.String()) {
		var o whatIfObject
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		host, _, _ := strings.Cut(o.Addr, ":")
		hosts[host] = o
	}
	return hosts
}

// TestWhatIf simulates the same network twice, with two resend times. It
// compares --what-if on the first capture with what really happened in the
// second run. It also compares a run with the capture's own settings with the
// first run.
//
// The tolerances are those of the method. One is a frame: a one-way delay is
// estimated as half of a round trip, which has waited for frames. The other is
// a share: half of the unanswered packets are assumed lost.
func TestWhatIf(t *testing.T) {
	testenv.Grid(t, "networks and settings of every protocol, each simulated and run again")
	const (
		base = "--seed 7 --loss 10% --delay 40ms --jitter 5ms --duration 30s --payload 16-100 --mix 1/0/0 --end none " +
			"--no-limits"
		slow      = base + " --protocol gaffer:game --messages 20 --resend 100ms"
		quick     = base + " --protocol gaffer:game --messages 20 --resend 50ms"
		lossy     = " --loss 25% --seed 11"
		atB       = " --tap b"
		tide      = base + " --protocol riptide:2.2.1 --messages 30"
		slowTide  = tide + " --resend 250ms"
		plain     = base + " --protocol srdp --rate 30 --timeout 200ms"
		slowPlain = base + " --protocol srdp --rate 30 --timeout 400ms"
		many      = base + " --protocol gaffer:game --messages 100 --resend 100ms"
		narrow    = base + " --protocol gaffer:narrow --messages 100 --resend 100ms"
		fewAcks   = base + " --protocol gaffer:few --messages 20 --resend 100ms"
		twice     = plain + " --repeats 2"
	)
	runs := map[string]whatIfRun{}
	all := t.TempDir()
	simulated := func(t *testing.T, flags string) whatIfRun {
		t.Helper()
		if _, ok := runs[flags]; !ok {
			dir := filepath.Join(all, strconv.Itoa(len(runs)))
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			runs[flags] = simulateMessages(t, dir, flags)
		}
		return runs[flags]
	}
	for _, c := range []struct {
		name          string
		first, second string
		change        string
		resend        float64 // found in the first run, in ms; 0 means unchecked
		near, far     float64 // tolerances, as shares: of what the side at the tap sends, and of the other side's
	}{
		{"gaffer 100 to 50", slow, quick, "resend=50ms", 100, 0.05, 0.2},
		{"gaffer 50 to 100", quick, slow, "resend=100ms", 50, 0.05, 0.2},
		{"gaffer 100 to 50, 25 % lost, tap at b", slow + atB + lossy, quick + atB + lossy, "resend=50ms", 100, 0.1, 0.25},
		{"riptide to 250", tide, slowTide, "resend=250ms", 0, 0.2, 0.2},
		{"riptide from 250", slowTide, tide, "resend=1.2rtt", 250, 0.2, 0.2},
		{"srdp 200 to 400", plain, slowPlain, "resend=400ms", 200, 0.25, 0.25},
		{"srdp 400 to 200", slowPlain, plain, "resend=200ms", 400, 0.25, 0.25},
		{"gaffer to a window of 16", many, narrow, "window=16", 100, 0.1, 0.3},
		{"gaffer from a window of 16", narrow, many, "window=256", 100, 0.1, 0.25},
		{"gaffer to 16 acks", slow, fewAcks, "acks=16", 100, 0.1, 0.25},
		{"gaffer 60 to 30 packets", slow, slow + " --rate 30", "rate=30", 100, 0.25, 0.25},
		{"gaffer 60 to 120 packets", slow, slow + " --rate 120", "rate=120", 100, 0.25, 0.25},
		{"riptide 60 to 30 ticks", tide, tide + " --rate 30", "rate=30", 0, 0.25, 0.25},
		{"riptide 60 to 20 ticks", tide, tide + " --rate 20", "rate=20", 0, 0.25, 0.25},
		{"srdp to 2 copies", plain, twice, "repeats=2", 200, 0.2, 0.2},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second := simulated(t, c.first), simulated(t, c.second)
			estimates := whatIfOf(t, first, c.change)
			if len(estimates) != 2 {
				t.Fatalf("%d sides, expected 2", len(estimates))
			}
			near := simulate.Addrs[0].Addr().String()
			if strings.Contains(c.first, atB) {
				near = simulate.Addrs[1].Addr().String()
			}
			// It is unknown how the frames of two games at another rate are aligned.
			frame := 0.0
			if rate, err := strconv.ParseFloat(strings.TrimPrefix(c.change, "rate="), 64); err == nil {
				frame = 1000 / rate
			}
			for host, o := range estimates {
				tolerance, share := c.far, 0.15
				if host == near {
					tolerance, share = c.near, 0.08
				} else if o.Certainty == machine.Unknown.String() {
					continue // it reports that it cannot say
				}
				tell := fmt.Sprintf("%s (near: %t)", host, host == near)
				hold(t, tell+": rehearsal", o.Rehearsal, first.truth[host], tolerance, 0)
				hold(t, tell+": what-if", o.Estimate, second.truth[host], tolerance, frame)
				holdBytes(t, tell+": what-if", &o.Estimate, second.sent[host], share)
				if c.resend > 0 && host == near {
					if v := o.Settings[0]; v.Name != "resend" || v.Unit != "ms" || math.Abs(v.Value-c.resend) > 17 {
						t.Errorf("resend found: %+v, it was %v ms", v, c.resend)
					}
				}
				was, is := float64(first.resends[host]), float64(second.resends[host])
				if math.Abs(is-was) > 0.3*was && (is > was) != (o.Estimate.Resends > o.Rehearsal.Resends) {
					t.Errorf("%s: resends %v, with the change %v; truly %v and %v", tell, o.Rehearsal.Resends,
						o.Estimate.Resends, was, is)
				}
			}
		})
	}
}

// hold compares figures with the times that messages really took.
func hold(t *testing.T, what string, got whatIfFigures, truth []time.Duration, tolerance, frame float64) {
	t.Helper()
	for _, q := range []struct {
		name string
		at   float64
		got  float64
	}{{"p50", 0.5, got.P50}, {"p95", 0.95, got.P95}} {
		want := float64(whatif.Quantile(truth, q.at)) / 1e6
		t.Logf("%s: %s %.1f ms, truly %.1f ms", what, q.name, q.got, want)
		if math.Abs(q.got-want) > max(tolerance*want, 17)+frame {
			t.Errorf("%s: %s %.1f ms, truly %.1f ms: beyond %.0f %%", what, q.name, q.got, want, 100*tolerance)
		}
	}
	if d := math.Abs(float64(got.Delivered - len(truth))); d > 0.02*float64(len(truth))+2 {
		t.Errorf("%s: %d messages delivered, truly %d", what, got.Delivered, len(truth))
	}
}

// holdBytes compares the estimated bytes of a side with the true ones.
func holdBytes(t *testing.T, what string, got *whatIfFigures, truth int, tolerance float64) {
	t.Helper()
	t.Logf("%s: %.0f bytes, truly %d", what, got.Bytes, truth)
	if math.Abs(got.Bytes-float64(truth)) > tolerance*float64(truth) {
		t.Errorf("%s: %.0f bytes, truly %d: beyond %.0f %%", what, got.Bytes, truth, 100*tolerance)
	}
}

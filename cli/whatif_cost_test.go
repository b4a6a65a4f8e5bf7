package cli

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/about"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay/whatif"
)

// playedGame is a capture in memory that can be read again.
type playedGame struct {
	frames []capture.Frame
	next   int
}

func (r *playedGame) Next(f *capture.Frame) error {
	if r.next == len(r.frames) {
		return io.EOF
	}
	*f = r.frames[r.next]
	r.next++
	return nil
}

func (r *playedGame) Rewind() error { r.next = 0; return nil }
func (r *playedGame) Close() error  { return nil }

// newPlayedGame reads a capture and changes its times by twist.
func newPlayedGame(t *testing.T, path string, twist func(n int, at machine.Instant) machine.Instant) *playedGame {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := &playedGame{}
	for f := (capture.Frame{}); ; {
		if err := in.Next(&f); err == io.EOF {
			return r
		} else if err != nil {
			t.Fatal(err)
		}
		own := f
		own.Data, own.At = bytes.Clone(f.Data), twist(len(r.frames), f.At)
		r.frames = append(r.frames, own)
	}
}

// TestWhatIfCostsByEvents limits the cost of an estimate by the number of
// packets, whatever their times. The cost is the number of the references'
// inputs and the allocated bytes.
func TestWhatIfCostsByEvents(t *testing.T) {
	const base = "--seed 7 --loss 5% --delay 40ms --jitter 5ms --duration 4s --rate 30 --payload 16-100 --mix 1/0/0 " +
		"--end none --no-limits"
	const day = 24 * time.Hour
	rng := rand.New(rand.NewPCG(1, 2))
	twists := []struct {
		name  string
		twist func(n int, at machine.Instant) machine.Instant
	}{
		{
			"a gap of 30 days",
			func(n int, at machine.Instant) machine.Instant { return at.Add(time.Duration(n/60) * 30 * day) },
		},
		{
			"a gap of 79 years",
			func(n int, at machine.Instant) machine.Instant { return at.Add(time.Duration(n/100) * 79 * 365 * day) },
		},
		{"9.9 s before every packet", func(n int, at machine.Instant) machine.Instant {
			return at.Add(time.Duration(n) * 9900 * time.Millisecond)
		}},
		{
			"a year before every packet",
			func(n int, at machine.Instant) machine.Instant { return at.Add(time.Duration(n%200) * 365 * day) },
		},
		{"backwards", func(n int, at machine.Instant) machine.Instant { return at.Add(-2 * time.Duration(at)) }},
		{"flipped at random", func(n int, at machine.Instant) machine.Instant {
			if rng.IntN(4) > 0 {
				return at
			}
			return at ^ 1<<rng.IntN(64)
		}},
		{"at random", func(int, machine.Instant) machine.Instant { return machine.Instant(rng.Int64()) }},
		{"at one time", func(int, machine.Instant) machine.Instant { return 1 }},
	}
	for _, game := range []struct {
		protocol, change string
		most             int // steps for each packet
	}{
		{"gaffer:game", "resend=50ms", 20},
		// In the ten seconds that remain of a silence, each side sends and reads
		// 600 packets.
		{"gaffer:game", "rate=60", 4000},
		// In that time each side sends ten heartbeats.
		{"riptide:2.2.1", "resend=50ms", 100},
		{"riptide:2.2.1", "rate=120", 100},
		{"srdp", "resend=50ms", 20},
	} {
		traffic := " --messages 20"
		if game.protocol == "srdp" {
			traffic = " --timeout 200ms"
		}
		dir := t.TempDir()
		path := simulateMessages(t, dir, base+" --protocol "+game.protocol+traffic).path
		a := &app.App{Streams: app.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, Registry: protocols()}
		profile := filepath.Join(dir, "game.yaml")
		if _, err := os.Stat(profile); err != nil {
			t.Fatal(err)
		}
		a.Flags.Profiles, a.Flags.Vantage = []string{profile}, "a"
		if err := about.LoadProfiles(a); err != nil {
			t.Fatal(err)
		}
		o, err := a.Options()
		if err != nil {
			t.Fatal(err)
		}
		changes, err := whatif.ParseChanges(game.change)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range twists {
			t.Run(game.protocol+" "+game.change+" "+x.name, func(t *testing.T) {
				r := newPlayedGame(t, path, x.twist)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				file, err := whatif.Run(r, o, changes)
				if err != nil {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
				for _, s := range file.Skipped {
					t.Errorf("not run again: %s", s.Reason)
				}
				steps, silences := 0, 0
				for i := range file.Flows {
					steps, silences = steps+file.Flows[i].Steps, silences+file.Flows[i].Silences
				}
				most := len(r.frames) * game.most
				if bytes := after.TotalAlloc - before.TotalAlloc; steps > most || bytes > 50<<20+uint64(steps)*512 {
					t.Errorf("%d steps and %d bytes for %d packets, expected at most %d steps", steps, bytes, len(r.frames), most)
				} else {
					t.Logf("%d flows, %d packets, %d steps, %d silences, %d MB", len(file.Flows), len(r.frames), steps,
						silences, bytes>>20)
				}
			})
		}
	}
}

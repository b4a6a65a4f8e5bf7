package replay_test

import (
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/judge"
	"github.com/ackscope/ackscope/replay"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// wroteRiptide is the table of the named behaviours by capture.
func wroteRiptide(run string) []string {
	version, _, _ := strings.Cut(run[1:], "_")
	switch version {
	case "200":
		return []string{"riptide@2.0"}
	case "21d":
		return []string{"riptide@dev-d"}
	case "21n":
		return []string{"riptide@dev-n"}
	case "210":
		if strings.Contains(run, "_lobby") || strings.Contains(run, "_three_noquality") {
			return []string{"riptide@2.1.0"}
		}
		return []string{"riptide@2.1.0", "riptide@2.1.1-2.2.1"}
	case "212", "221":
		return []string{"riptide@2.1.1-2.2.1"}
	}
	return nil // Pytide and runs of two implementations: each side by its own
}

var riptideCapture = regexp.MustCompile(`^[ut](py)?2?\d*[dn]?\d*_.*\.pcap`)

// TestRiptideCaptures: no side of any capture diverges from the behaviour that
// wrote it; and none where each is judged by what its own packets suggest.
func TestRiptideCaptures(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(pcaps, "[ut]*_*.pcap*"))
	if err != nil {
		t.Fatal(err)
	}
	captures := 0
	for _, path := range paths {
		name := filepath.Base(path)
		if !riptideCapture.MatchString(name) {
			continue
		}
		captures++
		run, _, _ := strings.Cut(name, ".")
		behaviours := append([]string{""}, wroteRiptide(run)...)
		if testing.Short() {
			behaviours = behaviours[:1]
		}
		for _, behaviour := range behaviours {
			f := replayed(t, path, replay.Options{Behaviour: behaviour})
			if len(f.Results) == 0 && !strings.Contains(run, "noserver") {
				t.Errorf("%s: nothing was compared", path)
			}
			for i := range f.Results {
				r := &f.Results[i]
				if d := r.Divergence; d != nil {
					t.Errorf("%s as %q: flow %d %s (%s): frame %d: %s: %s expected %s, got %s: %s", path, behaviour, r.Flow.ID, r.Side,
						r.Behaviour, d.Ref.Frame(), d.Rule, d.Field, d.Expected, d.Got, d.Because)
				}
			}
		}
	}
	if captures < 100 {
		t.Errorf("%d captures, expected 100 and more under %s", captures, pcaps)
	}
}

// TestRiptideFaults: the faults of the real library diverge from the behaviours
// without them, at the side at the tap.
func TestRiptideFaults(t *testing.T) {
	for _, c := range []struct{ file, behaviour, rule string }{
		{"u210_falseack.server", "riptide@main", "ack"},
		{"u21n_gap.server", "riptide@main", "ack"},
		{"u210_lobby.server", "riptide@2.1.1-2.2.1", "sequence"},
		{"u210_lobby.server", "riptide@main", "sequence"},
	} {
		paths, err := filepath.Glob(filepath.Join(pcaps, c.file+".pcap*"))
		if err != nil || len(paths) != 1 {
			t.Fatal(c.file, paths, err)
		}
		f := replayed(t, paths[0], replay.Options{Behaviour: c.behaviour})
		found := false
		for i := range f.Results {
			if d := f.Results[i].Divergence; d != nil {
				found = true
				if d.Rule.ID != c.rule {
					t.Errorf("%s as %s: %s, expected %s", c.file, c.behaviour, d.Rule, c.rule)
				}
			}
		}
		if !found {
			t.Errorf("%s as %s: no divergence", c.file, c.behaviour)
		}
	}
}

// TestRiptideLies changes one field of one message of the side at the tap, and
// expects the judge to find it at its frame.
func TestRiptideLies(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	planted := map[string]int{}
	for _, file := range []string{
		"u200_loss15.client", "u210_loss10.server", "u210_reorder.client", "u210_dup.server",
		"u221_loss10.client", "u21n_loss15.client", "u21d_loss20.server", "t200_clean.client", "t210_clean.client",
		"t210_rechunk.client", "t221_clean.client", "t21n_clean.client", "t21d_clean.client",
	} {
		paths, err := filepath.Glob(filepath.Join(pcaps, file+".pcap*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(paths) == 0 {
			continue
		}
		list, flow := flowOf(t, paths[0])
		settings := flow.Config().Profile.(*riptide.Settings)
		side := machine.A
		if flow.Facts().Vantage.Near(machine.B) {
			side = machine.B
		}
		codec := settings.Senders[side].Codec
		config := model.Config{Stream: file[0] == 't'}
		for i, s := range settings.Senders {
			config.Senders[i] = model.Speaker{Codec: s.Codec, Builds: s.Builds}
		}
		behaviour := model.BehaviourOf(codec.Dialect, settings.Senders[side].Builds).Name
		for tries := 0; tries < 400; tries++ {
			at := rng.IntN(len(list))
			var m wire.Message
			if list[at].From != side || codec.Parse(list[at].Bytes, list[at].Length, &m) != nil {
				continue
			}
			name := ""
			switch {
			case m.Type == wire.Ack && !m.HasCause && rng.IntN(2) == 0:
				m.AckBits ^= 1 << rng.IntN(16)
				name = "ack bits"
			case m.Type == wire.Ack || m.Type == wire.AckExtra:
				m.Last += uint16(1 + rng.IntN(50))
				name = "ack last"
			case m.Type == wire.Notify:
				m.AckBits ^= 1 << rng.IntN(8)
				name = "notify bits"
			case m.Type == wire.Reliable && m.BodyBits%8 == 0 && rng.IntN(3) == 0:
				m.Sequence += uint16(2 + rng.IntN(100))
				name = "sequence"
			default:
				continue
			}
			bit := m.BodyBit
			body := append([]byte(nil), list[at].Bytes[bit/8:]...)
			if bit%8 != 0 {
				if m.BodyBits > 0 {
					continue // a body that begins within a byte: left alone
				}
				body = nil
			}
			b, err := codec.Append(nil, &m, body, m.BodyBits)
			if err != nil || len(b) != len(list[at].Bytes) {
				continue
			}
			j, err := judge.New(config, flow.Facts(), [2]string{behaviour, behaviour})
			if err != nil {
				t.Fatal(err)
			}
			for n := range list {
				d := list[n]
				if n == at {
					d.Bytes = b
				}
				j.Observe(&d)
			}
			j.Finish()
			planted[name]++
			if config.Stream {
				planted["over TCP"]++
			}
			switch d := j.Opinion(side).Divergence; {
			case d == nil:
				t.Errorf("%s: %s in frame %d: not found", file, name, list[at].Ref.Frame())
			case d.Ref != list[at].Ref:
				t.Errorf("%s: %s in frame %d: found at frame %d: %s: %s", file, name, list[at].Ref.Frame(), d.Ref.Frame(),
					d.Rule, d.Because)
			}
		}
	}
	t.Log(planted)
	for _, name := range []string{"ack bits", "ack last", "notify bits", "over TCP"} {
		if planted[name] < 10 {
			t.Errorf("%s: planted %d times", name, planted[name])
		}
	}
}

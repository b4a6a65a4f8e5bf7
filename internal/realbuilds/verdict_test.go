package realbuilds

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// check compares what is wrong with a capture with what is known to be open.
func check(t *testing.T, name string, wrong []string) {
	t.Helper()
	item, known := open[name]
	switch {
	case !known:
		for _, w := range wrong {
			t.Errorf("%s: %s", name, w)
		}
	case len(wrong) == 0:
		t.Errorf("%s is right now: remove it from open (%s)", name, item)
	default:
		t.Logf("open: %s: %s: %s", name, item, strings.Join(wrong, "; "))
	}
}

// wrongOf returns what is wrong with the verdicts of a whole capture.
func (r *run) wrongOf(x *saying, tap string) (wrong []string) {
	want := uint64(r.breaks[tap])
	found := false
	for _, a := range x.accused() {
		switch {
		case !a.client || want == 0:
			wrong = append(wrong, "an honest side is accused: "+a.String())
		case a.frame != want:
			wrong = append(wrong, fmt.Sprintf("expected frame %d: %s", want, a))
		case !r.likely && a.certainty.String() != "certain":
			wrong = append(wrong, "expected certain: "+a.String())
		default:
			found = true
		}
	}
	if want > 0 && !found && len(wrong) == 0 {
		wrong = append(wrong, fmt.Sprintf("nothing diverges, expected frame %d of the client", want))
	}
	if why := x.impossibleCounts(); why != "" {
		wrong = append(wrong, why)
	}
	if r.honest() && !r.port {
		for _, rule := range slices.Sorted(maps.Keys(x.errors)) {
			wrong = append(wrong, fmt.Sprintf("finding %s, %s, about honest builds", rule, x.errors[rule]))
		}
	}
	if r.finding != "" && !x.findings[r.finding] {
		wrong = append(wrong, "no finding "+r.finding)
	}
	return wrong
}

// TestVerdicts: of each run and tap, replay names the side and the frame that no
// correct endpoint can have sent, and nothing else. The facts about honest runs
// agree with the logs.
func TestVerdicts(t *testing.T) {
	for i := range runs {
		r := &runs[i]
		logs := readLogs(t, r.in(), r.name)
		for _, tap := range r.taps() {
			name := r.name + "." + tap
			x := say(t, name, load(t, r.capture(tap)))
			wrong := r.wrongOf(x, tap)
			if r.honest() && logs != nil {
				wrong = append(wrong, denied(x, logs, tap, 0)...)
			}
			check(t, name, wrong)
		}
	}
}

// TestOracleAgainstLog: the datagram that the oracle names at the client's own
// tap is one that the unmodified library, fed with the same, did not write.
func TestOracleAgainstLog(t *testing.T) {
	for i := range runs {
		r := &runs[i]
		logs := readLogs(t, r.in(), r.name)
		if r.port || r.folder != "" || r.restarts || r.riptide || logs == nil {
			continue
		}
		differs := map[string]bool{}
		for _, l := range logs[client].sent {
			if l.Differs == 1 {
				differs[l.Hex] = true
			}
		}
		e := r.bound(t, client)[0]
		frame, _ := e.impossible()
		if len(differs) == 0 && frame != 0 {
			t.Errorf("%s: the oracle names frame %d, and by the log nothing differs", r.name, frame)
		}
		for _, d := range e.list {
			if head := hex.EncodeToString(d.b[:min(14, len(d.b))]); d.frame == frame && !differs[head] {
				t.Errorf("%s: the oracle names frame %d, and by the log that datagram does not differ", r.name, frame)
			}
		}
	}
}

// TestBeginnings runs replay over beginnings of captures. It names the frame that no
// correct endpoint can have sent once that frame has passed. Before, it accuses no
// side.
func TestBeginnings(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 16))
	for i := range runs {
		r := &runs[i]
		for _, tap := range r.taps() {
			first := r.breaks[tap]
			if _, whole := open[r.name+"."+tap]; first == 0 || whole {
				continue
			}
			p := load(t, r.capture(tap))
			for range 4 {
				long := first + rng.IntN(len(p.frames)-first)
				for _, n := range []int{rng.IntN(first), first, long} {
					if n < 8 {
						continue // too few to recognise a protocol
					}
					name := fmt.Sprintf("%s.%s to %d", r.name, tap, n)
					x := say(t, name, p.cut(0, n))
					b := *r
					b.likely = true // what passes later makes it certain
					if n < first {
						b.breaks = nil
					}
					check(t, name, b.wrongOf(x, tap))
				}
			}
		}
	}
}

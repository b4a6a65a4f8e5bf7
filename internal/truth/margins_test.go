package truth

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ackscope/ackscope/internal/thresholds/dial"
)

// TestMarginsGaffer measures by which factor each measured constant of the Gaffer
// family may be off. See margins.
func TestMarginsGaffer(t *testing.T) { margins(t, "gaffer", gafferScenes) }

// TestMarginsRiptide is TestMarginsGaffer of Riptide.
func TestMarginsRiptide(t *testing.T) { margins(t, "riptide", riptideScenes) }

// TestMarginsSRDP is TestMarginsGaffer of SRDP.
func TestMarginsSRDP(t *testing.T) { margins(t, "srdp", srdpScenes) }

// TestMarginsYojimbo is TestMarginsGaffer of what infers yojimbo's configuration.
func TestMarginsYojimbo(t *testing.T) { margins(t, "gaffer/yojimbo.", yojimboScenes) }

// TestMarginsRestart is TestMarginsGaffer of what tells a new connection from the one before it.
func TestMarginsRestart(t *testing.T) { margins(t, "gaffer/tracker.RestartMost", restartScenes) }

// result is what is measured of one constant, as internal/thresholds reads it.
type result struct {
	Key, Why string
	Down, Up float64
	Moved    int
}

// kept is the share of certain facts and of divergences that has to stay when a constant is
// scaled. With less, a constant would hold by silence. The tenth is room for facts that rest on
// their neighbours, such as one flow of ten that is placed later.
const kept = 0.9

// margins scales each constant of a protocol, up and down. A protocol with a slash, such as
// "gaffer/yojimbo.", is how the names of the constants begin. The steps in each direction are:
//
//  1. Scale by 1.5, which must hold.
//  2. Scale by 5, and by 3 and 2 until one holds.
//
// A factor holds where all of these are true:
//
//   - ackscope says nothing new of any scene that its logs deny.
//   - It finds no new divergence of a correct endpoint.
//   - Nearly all facts that were certain are certain still (kept).
//
// A normal build has nothing to scale: the test is skipped, and internal/thresholds
// checks the margins that are committed. `make thresholds` measures them.
func margins(t *testing.T, protocol string, scenes func(*testing.T) []*scene) {
	to := os.Getenv("ACKSCOPE_MARGINS")
	if to == "" || len(dial.Names()) == 0 {
		t.Skip("make thresholds runs it: it scales constants that a normal build has as they are")
	}
	only := regexp.MustCompile(os.Getenv("ACKSCOPE_MARGINS_OF"))
	m := &measurement{t: t, scenes: scenes(t)}
	m.base = m.analyze(false)
	for i, s := range m.scenes {
		for _, fault := range m.base[i].faults() {
			t.Logf("%s: as it is: %s", s.name, fault)
		}
	}
	t.Logf("%s: %d scenes, %d facts certain, %d divergences", protocol, len(m.scenes), m.base.certain(),
		m.base.divergences())
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for _, name := range dial.Names() {
		of, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, "machine"), "/"), ".")
		of, _, _ = strings.Cut(of, "/") // empty for a constant that all protocols share
		whole := !strings.Contains(protocol, "/") && (of == "" || of == protocol)
		if !whole && !strings.HasPrefix(name, "machine/"+protocol) || !only.MatchString(name) {
			continue
		}
		r := m.measure(name)
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(out, "%s\n", line)
		t.Logf("%s: ÷ %g, × %g, moves %d scenes; %s", name, r.Down, r.Up, r.Moved, r.Why)
	}
}

// measurement is the scenes, and what ackscope says of them with all constants as they are.
type measurement struct {
	whole  bool // analyze all scenes, even after a fault
	t      *testing.T
	scenes []*scene
	base   outcomes
}

// outcomes are by scene.
type outcomes []outcome

func (o outcomes) certain() (n int) {
	for i := range o {
		n += o[i].certain
	}
	return n
}

func (o outcomes) divergences() (n int) {
	for i := range o {
		n += o[i].found
	}
	return n
}

// analyze runs all scenes, some side by side. With judging set, it compares only what judges
// find. After the first new fault it skips the remaining scenes.
func (m *measurement) analyze(judging bool) outcomes {
	all := make(outcomes, len(m.scenes))
	next := make(chan int)
	var wrong atomic.Bool
	var busy sync.WaitGroup
	for range runtime.NumCPU() {
		busy.Go(func() {
			for i := range next {
				if all[i].skipped = wrong.Load(); all[i].skipped {
					continue
				}
				var was *outcome
				if judging {
					was = &m.base[i]
				}
				all[i] = m.scenes[i].analyze(m.t, was)
				if m.base != nil && !m.whole && len(m.newFaults(i, &all[i])) > 0 {
					wrong.Store(true)
				}
			}
		})
	}
	for i := range m.scenes {
		next <- i
	}
	close(next)
	busy.Wait()
	return all
}

// measure scales one constant.
func (m *measurement) measure(name string) result {
	r := result{Key: name}
	judging := strings.Contains(name, "/judge.")
	var why [2]string
	for i, factors := range m.factors() {
		holds := 1.0
		for k, factor := range factors {
			if err := dial.Scale(name, factor); err != nil {
				m.t.Fatal(err)
			}
			now := m.analyze(judging)
			r.Moved = max(r.Moved, m.moved(now))
			fault := m.fault(now)
			if fault == "" {
				holds = max(factor, 1/factor)
			} else {
				why[i] = fmt.Sprintf("%s: %s", word(factor), fault)
			}
			// The first factor is the least that must hold. The others begin with the largest.
			if (fault == "") == (k > 0) {
				break
			}
		}
		if err := dial.Scale(name, 1); err != nil {
			m.t.Fatal(err)
		}
		if i == 0 {
			r.Down = holds
		} else {
			r.Up = holds
		}
	}
	for _, factor := range []float64{1. / 1000, 1000} {
		if r.Moved == 0 {
			if err := dial.Scale(name, factor); err != nil {
				m.t.Fatal(err)
			}
			r.Moved = -m.moved(m.analyze(judging))
		}
	}
	if err := dial.Scale(name, 1); err != nil {
		m.t.Fatal(err)
	}
	switch {
	case r.Down <= r.Up && why[0] != "":
		r.Why = why[0]
	default:
		r.Why = why[1]
	}
	return r
}

// factors are those that are tried, down and up, in this order.
func (m *measurement) factors() [2][]float64 {
	if text := os.Getenv("ACKSCOPE_MARGINS_FACTORS"); text != "" { // to find where one fails
		var both [2][]float64
		for word := range strings.SplitSeq(text, ",") {
			f, err := strconv.ParseFloat(word, 64)
			if err != nil {
				m.t.Fatal(err)
			}
			both[0], both[1] = append(both[0], 1/f), append(both[1], f)
		}
		return both
	}
	return [2][]float64{{1. / 1.5, 1. / 5, 1. / 3, 1. / 2}, {1.5, 5, 3, 2}}
}

// word formats a factor: "÷ 2", "× 1.5".
func word(factor float64) string {
	if factor < 1 {
		return fmt.Sprintf("÷ %.3g", 1/factor)
	}
	return fmt.Sprintf("× %.3g", factor)
}

// moved counts the scenes of which ackscope says something else.
func (m *measurement) moved(now outcomes) (n int) {
	for i := range now {
		was, is := &m.base[i], &now[i]
		if !is.skipped && (is.told.digest != was.told.digest || is.judged.digest != was.judged.digest) {
			n++
		}
	}
	return n
}

// newFaults returns the faults of a scene that it did not have before. A side that diverged before
// may diverge at another packet.
func (m *measurement) newFaults(i int, now *outcome) (list []string) {
	of := func(fault string) string {
		side, _, _ := strings.Cut(fault, divergesAs)
		return side
	}
	known := map[string]bool{}
	for _, f := range m.base[i].faults() {
		known[of(f)] = true
	}
	for _, f := range now.faults() {
		if !known[of(f)] {
			list = append(list, m.scenes[i].name+": "+f)
		}
	}
	return list
}

// fault says what does not hold, in the first scene with a fault. It returns "" when all holds.
func (m *measurement) fault(now outcomes) string {
	for i := range now {
		if list := m.newFaults(i, &now[i]); len(list) > 0 {
			return list[0]
		}
	}
	return m.fewer(now)
}

// fewer says which share of the certain facts, or of the faults found, is gone. It returns "" where
// enough are left.
func (m *measurement) fewer(now outcomes) string {
	if was, is := m.base.certain(), now.certain(); float64(is) < kept*float64(was) {
		return fmt.Sprintf("%d facts are certain, %d were", is, was)
	}
	if was, is := m.base.divergences(), now.divergences(); float64(is) < kept*float64(was) {
		return fmt.Sprintf("%d divergences of faulty endpoints are found, %d were", is, was)
	}
	return ""
}

// TestMarginsCatch: a grossly wrong constant leads to a fault of the expected kind. A
// measurement that lets such a constant through is none.
func TestMarginsCatch(t *testing.T) {
	if len(dial.Names()) == 0 {
		t.Skip("make thresholds runs it: it scales constants that a normal build has as they are")
	}
	all := map[string][]*scene{"gaffer": gafferScenes(t), "riptide": riptideScenes(t), "srdp": srdpScenes(t)}
	for _, x := range []struct {
		of     string
		name   string
		factor float64
		only   string // scenes
		fault  string
	}{
		{"gaffer", "machine.NearProof", 5, `--delay 5ms .*--tap between`, "the tap is said to stand at"},
		{"gaffer", "machine/gaffer/tracker.RestartMost", 1. / 1000, `^(reliable|plain|crc32)`, "missing"},
		{"riptide", "machine/riptide.TickSlack", 1. / 1000, `^u21d_gap\.`, "than its log has it"},
		{"riptide", "machine/riptide/judge.clearSlack", 1. / 1000, `^u210_lobby2\.`, "resend-after-ack"},
		{"srdp", "machine/srdp/tracker.quietAcked", 1. / 1000, `--loss`, "is not reported"},
		{"srdp", "machine/srdp/judge.timerSlack", 1000, `^fault`, "divergences of faulty endpoints"},
	} {
		m := &measurement{t: t, whole: true}
		only := regexp.MustCompile(x.only)
		for _, s := range all[x.of] {
			if only.MatchString(s.name) {
				m.scenes = append(m.scenes, s)
			}
		}
		m.base = m.analyze(false)
		if err := dial.Scale(x.name, x.factor); err != nil {
			t.Fatal(err)
		}
		now := m.analyze(false)
		faults := []string{m.fewer(now)}
		for i := range now {
			faults = append(faults, m.newFaults(i, &now[i])...)
		}
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, x.fault) }) {
			t.Errorf("%s %s over %d scenes: %d faults, the first is %q; expected one with %q", x.name, word(x.factor),
				len(m.scenes), len(faults), m.fault(now), x.fault)
		}
		if err := dial.Scale(x.name, 1); err != nil {
			t.Fatal(err)
		}
	}
}

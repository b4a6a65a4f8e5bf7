package realbuilds

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// seedVariable sets the seed of the random damage. Each run of `make realbuilds`
// draws a new one and prints it.
const seedVariable = "ACKSCOPE_REALBUILDS_SEED"

// subject is a whole capture, which is to be damaged.
type subject struct {
	name    string
	tap     string
	tape    *tape
	logs    map[string]*endpointLog // nil where they have another form, and where a build has a mistake
	mistake bool                    // the client's build has a mistake
	t       *testing.T
	whole   *saying // what is said of the whole capture, once it is asked for
	breaks  int     // the first frame of the client that no correct endpoint can have sent; 0 for none
}

// subjects returns the captures of runs. With all set it adds those of
// testdata/pcaps that replay does not accuse as they are.
func subjects(t *testing.T, all bool) (list []subject) {
	t.Helper()
	for i := range runs {
		r := &runs[i]
		for _, tap := range r.taps() {
			s := subject{
				t: t, name: r.name + "." + tap, tap: tap, tape: load(t, r.capture(tap)), mistake: !r.honest(),
				breaks: r.breaks[tap],
			}
			if r.honest() {
				s.logs = readLogs(t, r.in(), r.name)
			}
			list = append(list, s)
		}
	}
	if !all {
		return list
	}
	for _, pattern := range []string{"*.pcap.gz", "*.pcapng.gz"} {
		paths, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name, rest, _ := strings.Cut(filepath.Base(path), ".")
			tap, _, _ := strings.Cut(rest, ".")
			p := load(t, filepath.Base(path))
			if len(p.frames) < 100 || len(p.frames) > 20000 || len(say(t, name, p).accused()) > 0 {
				continue
			}
			list = append(list, subject{t: t, name: name + "." + tap, tap: tap, tape: p})
		}
	}
	return list
}

// faults reports whether the whole capture shows a fault of an endpoint's code by
// some rule. Some releases of Riptide have such faults.
func (s *subject) faults(rule string) bool {
	if s.whole == nil {
		whole := &tape{frames: s.tape.frames}
		s.whole = say(s.t, s.name, whole)
	}
	_, ok := s.whole.errors[rule]
	return ok
}

// damaged is a capture made from a subject.
type damaged struct {
	of   *subject
	what string
	tape *tape
	lack bool // it lacks packets, and does not say so: an accusation may be likely
}

func (d *damaged) name() string { return d.of.name + " " + d.what }

// damage draws a cut, a loss of 1 % of the frames, or a snap length.
func damage(rng *rand.Rand, s *subject, kind string) *damaged {
	n := len(s.tape.frames)
	switch kind {
	case "cut":
		from := rng.IntN(n - 10)
		to := n
		if rng.IntN(2) == 0 {
			to = min(n, from+10+rng.IntN(600))
		}
		return s.damaged(kind, from+1, to)
	case "drop":
		return s.damaged(kind, rng.IntN(1e6), 0)
	}
	return s.damaged(kind, 46+rng.IntN(100), 0)
}

// damaged damages the subject. For a cut, x and y are its first and last frame. For
// a loss of 1 % of the frames, x is the seed. For a snap length, x is the length.
func (s *subject) damaged(kind string, x, y int) *damaged {
	switch kind {
	case "cut":
		return &damaged{s, fmt.Sprintf("cut %d-%d", x, y), s.tape.cut(x-1, y), false}
	case "drop":
		return &damaged{s, fmt.Sprintf("drop %d", x), s.tape.drop(rand.New(rand.NewPCG(uint64(x), 1)), 0.01), true}
	}
	return &damaged{s, fmt.Sprintf("snap %d", x), s.tape.snap(x), false}
}

// wrong returns what is wrong with what Ackscope says of a damaged capture. A build
// with a mistake may be accused from the frame on that shows it.
func (d *damaged) wrong(x *saying) (list []string) {
	for _, a := range x.accused() {
		if d.of.mistake && a.client && d.of.breaks > 0 && d.tape.original(a.frame) >= uint64(d.of.breaks) {
			continue
		}
		if !d.lack || a.certainty == machine.Certain {
			list = append(list, "an honest side is accused: "+a.String())
		}
	}
	if d.of.logs != nil {
		begins := math.Inf(1)
		if !d.lack {
			begins = float64(d.tape.frames[0].At)/1e9 + stamp
		}
		list = append(list, denied(x, d.of.logs, d.of.tap, begins)...)
	}
	if why := x.impossibleCounts(); why != "" {
		list = append(list, why)
	}
	for _, rule := range slices.Sorted(maps.Keys(x.errors)) {
		if !d.of.mistake && !d.of.faults(rule) && (!d.lack || x.errors[rule] == machine.Certain) {
			list = append(list, fmt.Sprintf("finding %s, %s, which the whole capture does not have", rule, x.errors[rule]))
		}
	}
	return list
}

// TestDamaged damages each capture in fixed ways, and in those that are or were open.
func TestDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 16))
	list := subjects(t, false)
	done := map[string]bool{}
	for _, kind := range []string{"cut", "cut", "cut", "drop", "snap"} {
		for i := range list {
			d := damage(rng, &list[i], kind)
			check(t, d.name(), d.wrong(say(t, d.name(), d.tape)))
			done[d.name()] = true
		}
	}
	for _, name := range append(slices.Sorted(maps.Keys(open)), mended...) {
		if damages.MatchString(name) && !done[name] {
			d := caseOf(t, name, list)
			check(t, name, d.wrong(say(t, name, d.tape)))
		}
	}
}

var damages = regexp.MustCompile(" (cut|drop|snap) ")

// caseOf returns a damaged capture by its name: "clean3.client cut 1504-1661".
func caseOf(t *testing.T, text string, list []subject) *damaged {
	t.Helper()
	var name, kind string
	var x, y int
	if n, err := fmt.Sscanf(text, "%s %s %d-%d", &name, &kind, &x, &y); n < 3 {
		t.Fatalf("%q: expected such as clean3.client cut 1504-1661: %v", text, err)
	}
	for i := range list {
		if list[i].name == name {
			return list[i].damaged(kind, x, y)
		}
	}
	paths, err := filepath.Glob(filepath.Join(testenv.Capture(t, ""), name+".pcap*.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%q: no capture of that name", text)
	}
	s := subject{t: t, name: name, tape: load(t, filepath.Base(paths[0]))}
	return s.damaged(kind, x, y)
}

// TestHeldBack: two damaged captures of honest builds that were once accused.
func TestHeldBack(t *testing.T) {
	for name, lack := range map[string]bool{"clean9.client.cut18": false, "clean5.client.drop14": true} {
		p := load(t, "realbuilds/"+name+".pcap.gz")
		d := damaged{of: &subject{t: t, name: name, tape: p}, tape: p, lack: lack}
		check(t, name, d.wrong(say(t, name, p)))
	}
}

// TestDamagedAtRandom damages the captures of all libraries at random:
// 5,000 cuts, 800 captures that lack 1 % of the frames, 200 snap lengths.
func TestDamagedAtRandom(t *testing.T) {
	testenv.Grid(t, "6,000 captures")
	seed, less := rand.Uint64()%1e9, 1
	if os.Getenv("ACKSCOPE_REALBUILDS") == "" {
		seed, less = 1, 10 // make full repeats itself
	}
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	rng := rand.New(rand.NewPCG(seed, 16))
	list := subjects(t, true)
	found := map[string][]string{} // by item of openCauses, or by the capture and the sentence
	for _, k := range []struct {
		kind  string
		times int
	}{{"cut", 5000}, {"drop", 800}, {"snap", 200}} {
		for range k.times / less {
			d := damage(rng, &list[rng.IntN(len(list))], k.kind)
			for _, w := range d.wrong(say(t, d.name(), d.tape)) {
				w = d.name() + ": " + w
				item := causeOf(w)
				found[item] = append(found[item], w)
			}
		}
	}
	report(t, found)
}

// TestCase repeats one damaged capture, so that it can be looked at:
//
//	ACKSCOPE_REALBUILDS_CASE='clean3.client cut 1504-1661' ACKSCOPE_REALBUILDS_WRITE=/tmp/x.pcapng \
//		go test -v -run 'TestCase$' ./internal/realbuilds
func TestCase(t *testing.T) {
	text := os.Getenv("ACKSCOPE_REALBUILDS_CASE")
	if text == "" {
		t.Skip("ACKSCOPE_REALBUILDS_CASE names no damaged capture")
	}
	var seed uint64
	var wrong []string
	var p *tape
	if n, _ := fmt.Sscanf(text, "simulated %d", &seed); n == 1 {
		s := draw(seed)
		var logs map[string]*endpointLog
		p, logs = s.run(t)
		wrong = s.wrong(t, p, logs)
	} else {
		d := caseOf(t, text, subjects(t, false))
		p = d.tape
		wrong = d.wrong(say(t, text, p))
	}
	if path := os.Getenv("ACKSCOPE_REALBUILDS_WRITE"); path != "" {
		if err := p.write(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range wrong {
		t.Errorf("%s: %s", text, w)
	}
}

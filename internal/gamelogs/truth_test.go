package gamelogs

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var registry = dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)

// line is what the tests use of a line of a truth file.
type line struct {
	T        float64        `json:"t"`
	Endpoint string         `json:"endpoint"`
	Conn     int            `json:"conn"`
	Event    string         `json:"event"`
	Seq      *int64         `json:"seq"`
	Mode     string         `json:"mode"`
	Counters map[string]any `json:"counters"`
	Metrics  map[string]any `json:"metrics"`
	RTT      float64        `json:"rtt"`
}

// run is a capture and the log of the endpoint at which it was taken.
type run struct {
	name    string // of the capture
	lines   []line // of the endpoint, in order of time
	far     []line // of the other endpoint
	trace   *gamelog.Trace
	session *analyze.Session
	gap     float64 // the median interval of its sends, in seconds
}

var captureName = regexp.MustCompile(`^(.*)\.(client|server)\.pcap(ng)?\.gz$`)

// endpointLines returns the lines of the endpoint that a capture was taken at.
func endpointLines(t *testing.T, text []byte, endpoint string) (list []line) {
	t.Helper()
	scan := bufio.NewScanner(bytes.NewReader(text))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Endpoint == endpoint || endpoint == "client" && l.Endpoint == "client1" {
			list = append(list, l)
		}
	}
	return list
}

// logOf returns the log of a server, or of its first client.
func logOf(t *testing.T, text []byte, endpoint string) (list []line) {
	t.Helper()
	for _, l := range endpointLines(t, text, endpoint) {
		if l.Conn == 0 || endpoint == "server" {
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(x, y line) int { return cmp.Compare(x.T, y.T) })
	return list
}

// load analyses a capture.
func load(t *testing.T, path string) (*analyze.Session, *gamelog.Trace) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	trace := &gamelog.Trace{}
	s, err := analyze.RunTwice(in, analyze.Options{Registry: registry, Sink: trace.Take})
	if err != nil {
		t.Fatal(err)
	}
	return s, trace
}

func sends(l *line) bool { return l.Event == "sent" || l.Event == "send" }

// runs returns the captures whose endpoint logged its sends.
func runs(t *testing.T) (list []*run) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "*.pcap*.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range files {
		if !testenv.Whole() && i%8 != 0 {
			continue
		}
		m := captureName.FindStringSubmatch(filepath.Base(path))
		if m == nil {
			continue
		}
		truth := strings.TrimSuffix(path, filepath.Base(path)) + m[1] + ".truth.jsonl.gz"
		r := &run{name: m[1] + "." + m[2]}
		text := testenv.Unpacked(t, truth)
		r.lines = logOf(t, text, m[2])
		r.far = logOf(t, text, map[string]string{"client": "server", "server": "client"}[m[2]])
		var at, gaps []float64
		for i := range r.lines {
			if sends(&r.lines[i]) && r.lines[i].Conn == 0 {
				at = append(at, r.lines[i].T)
			}
		}
		if len(at) < 10 {
			continue
		}
		for i := 1; i < len(at); i++ {
			gaps = append(gaps, at[i]-at[i-1])
		}
		gaps = slices.DeleteFunc(gaps, func(g float64) bool { return g < 1e-3 }) // messages of one frame
		slices.Sort(gaps)
		r.gap = gaps[len(gaps)/2]
		r.session, r.trace = load(t, path)
		list = append(list, r)
	}
	return list
}

// variant says how a log is made of a truth file.
type variant struct {
	name     string
	least    int
	sequence bool
	sends    bool
	counters bool
	keep     float64 // share of the lines
	jitter   float64 // seconds
	unit     float64 // in seconds
	digits   int
	epoch    float64 // seconds to add
	skew     float64
}

// write makes a log.
func (v *variant) write(lines []line) []byte {
	random := rand.New(rand.NewPCG(1, uint64(len(lines))))
	var b bytes.Buffer
	base := lines[0].T
	for i := range lines {
		l := &lines[i]
		if random.Float64() > v.keep {
			continue
		}
		at := (l.T - base) * (1 + v.skew)
		if v.jitter > 0 {
			at += (2*random.Float64() - 1) * v.jitter
		}
		stamp := fmt.Sprintf("%.*f", v.digits, (v.epoch+at)/v.unit)
		switch {
		case sends(l) && v.sends && v.sequence && l.Seq != nil:
			fmt.Fprintf(&b, `{"t":%s,"event":"send","sequence":%d,"mode":%q,"conn":%d}`+"\n", stamp, *l.Seq, l.Mode, l.Conn)
		case sends(l) && v.sends && !v.sequence:
			fmt.Fprintf(&b, `{"t":%s,"event":"send"}`+"\n", stamp)
		case v.counters && (l.Counters != nil || l.Metrics != nil):
			c := l.Counters
			if c == nil {
				c = l.Metrics
			}
			text, _ := json.Marshal(c)
			fmt.Fprintf(&b, `{"t":%s,"counters":%s,"rtt":%f}`+"\n", stamp, text, l.RTT)
		}
	}
	return b.Bytes()
}

// variants are the logs that are made of each truth file. least is the share of the logs that
// must be aligned, in percent.
var variants = []variant{
	{
		name: "sequence numbers", least: 88, sequence: true, sends: true, keep: 1, unit: 1, digits: 6, epoch: 1000,
		skew: 200e-6,
	},
	{
		name: "half of the lines missing", least: 70, sequence: true, sends: true, keep: 0.5, unit: 1, digits: 6,
		skew: 200e-6,
	},
	{name: "no sequence numbers", least: 85, sends: true, keep: 1, unit: 1e-3, digits: 3, epoch: 1e6, skew: 200e-6},
	{
		name: "neither, half missing", least: 55, sends: true, keep: 0.5, unit: 1e-9, digits: 0, epoch: 1e9,
		skew: -500e-6,
	},
	{
		name: "jitter of 50 µs", least: 80, sequence: true, sends: true, keep: 1, jitter: 50e-6, unit: 1, digits: 6,
		epoch: 1000, skew: 200e-6,
	},
	{
		name: "whole milliseconds", least: 80, sequence: true, sends: true, keep: 1, unit: 1e-3, epoch: 1000,
		skew: 200e-6,
	},
	{name: "counters alone", counters: true, keep: 1, unit: 1e-9, epoch: 1.7e9, skew: -200e-6},
}

// The time that alignment gives to each line must be that of the truth. It must be within a frame
// of the game, and within the stated bound. make full runs all captures, and prints the table of
// docs/game-log.md.
func TestTruth(t *testing.T) {
	list := runs(t)
	for i := range variants {
		v := &variants[i]
		logs, aligned := 0, 0
		var worst, wide float64 // in frames; in seconds
		for _, r := range list {
			l, err := gamelog.Read("game.jsonl", bytes.NewReader(v.write(r.lines)))
			if err != nil {
				continue // the endpoint logged no counters
			}
			logs++
			start, _ := r.session.Span()
			a := gamelog.Align(l, gamelog.Owner{}, r.trace, start)
			if !a.OK() {
				continue
			}
			aligned++
			off, beyond := v.errors(r.lines, a)
			worst, wide = max(worst, off/r.gap), max(wide, off)
			if off > r.gap || beyond > 0 {
				t.Errorf("%s, %s: %.3f ms off, a frame takes %.3f ms; %.3f ms beyond the bound", v.name, r.name, off*1e3,
					r.gap*1e3, beyond*1e3)
			}
		}
		t.Logf("| %s | %d | %d | %d | %.3f of a frame, %.1f ms |", v.name, logs, aligned, logs-aligned, worst, wide*1e3)
		if aligned*100 < v.least*logs {
			t.Errorf("%s: %d of %d logs aligned, want %d %%", v.name, aligned, logs, v.least)
		}
	}
}

// errors returns how far the times of a log are off at most, and how far beyond the bound that
// they state. Both are in seconds.
func (v *variant) errors(lines []line, a *gamelog.Aligned) (off, beyond float64) {
	first := float64(a.Start())/1e9 - a.Offset()
	written := func(e *gamelog.Entry) float64 { return first + e.T*v.unit }
	for i := range a.Entries {
		e := &a.Entries[i]
		truth := lines[0].T + (written(e)-v.epoch)/(1+v.skew)
		d := math.Abs(float64(a.At(e)-machine.Instant(truth*1e9)) / 1e9)
		off = max(off, d)
		beyond = max(beyond, d-a.Within(e).Seconds()-v.jitter-v.unit/2*math.Pow10(-v.digits)-socketCall)
	}
	return off, beyond
}

// socketCall is how long a packet takes from the line of the log to the capture.
// Source: testdata/pcaps/README.md: "within about 0.3 ms"
const socketCall = 300e-6

// A log of another run must not be aligned, though both begin at sequence 0 and send at the
// same pace.
func TestWrongLogs(t *testing.T) {
	list := runs(t)
	base := func(r *run) string { name, _, _ := strings.Cut(r.name, "."); return name }
	for i := range variants {
		v := &variants[i]
		tried := 0
		for i, r := range list {
			for k := range testenv.Rounds(1, 8, 24) {
				o := list[(i+1+k*k)%len(list)]
				if base(o) == base(r) {
					continue
				}
				l, err := gamelog.Read("game.jsonl", bytes.NewReader(v.write(o.lines)))
				if err != nil {
					continue
				}
				tried++
				start, _ := r.session.Span()
				if a := gamelog.Align(l, gamelog.Owner{}, r.trace, start); a.OK() {
					t.Errorf("%s: the log of %s was aligned with %s: %s", v.name, o.name, r.name, a)
				}
			}
		}
		t.Logf("%s: %d logs of other runs, none aligned", v.name, tried)
	}
}

// whole is a log with all that an endpoint wrote.
var whole = variant{
	name: "all", sequence: true, sends: true, counters: true, keep: 1, unit: 1, digits: 6, epoch: 1000, skew: 200e-6,
}

// The log of the side that the capture was not taken at may be off by half of the round trip. Its
// bound must say so.
func TestFarLogs(t *testing.T) {
	logs, aligned := 0, 0
	var worst float64
	for _, r := range runs(t) {
		if len(r.far) == 0 {
			continue
		}
		l, err := gamelog.Read("game.jsonl", bytes.NewReader(whole.write(r.far)))
		if err != nil {
			continue
		}
		logs++
		start, _ := r.session.Span()
		a := gamelog.Align(l, gamelog.Owner{}, r.trace, start)
		if !a.OK() {
			continue
		}
		aligned++
		off, beyond := whole.errors(r.far, a)
		worst = max(worst, off)
		if beyond > 0 && !a.Unplaced {
			t.Errorf("%s: %.3f ms off, %.3f ms beyond the bound: %s", r.name, off*1e3, beyond*1e3, a)
		}
	}
	t.Logf("%d logs of the other side, %d aligned, %.1f ms off at most", logs, aligned, worst*1e3)
	if aligned == 0 {
		t.Error("none of them was aligned")
	}
}

// The counters of real libraries agree with the capture. A counter that is wrong from some line
// on parts there.
func TestCounters(t *testing.T) {
	values, planted := 0, 0
	for _, r := range runs(t) {
		text := whole.write(r.lines)
		start, _ := r.session.Span()
		l, err := gamelog.Read("game.jsonl", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		a := gamelog.Align(l, gamelog.Owner{}, r.trace, start)
		for i := range a.Compared {
			c := &a.Compared[i]
			values += c.Values
			if c.Line > 0 {
				t.Errorf("%s: %s", r.name, c)
			}
		}
		if len(a.Compared) == 0 {
			continue
		}
		wrong, line := miscount(text)
		if line == 0 {
			continue
		}
		if l, err = gamelog.Read("game.jsonl", bytes.NewReader(wrong)); err != nil {
			t.Fatal(err)
		}
		a = gamelog.Align(l, gamelog.Owner{}, r.trace, start)
		i := slices.IndexFunc(a.Compared, func(c gamelog.Comparison) bool { return c.Name == "counters.acked" })
		if i < 0 {
			continue
		}
		planted++
		if c := &a.Compared[i]; c.Line != line {
			t.Errorf("%s: acked is wrong from line %d on: %s", r.name, line, c)
		}
	}
	t.Logf("%d values agree; %d planted miscounts found", values, planted)
}

var acked = regexp.MustCompile(`"acked":(\d+)`)

// miscount makes the counter of acked packets 500 too high in the second half of its values. It
// returns the first line that is wrong, or 0.
func miscount(text []byte) ([]byte, int) {
	lines := bytes.Split(text, []byte("\n"))
	var at []int
	for i := range lines {
		if acked.Match(lines[i]) {
			at = append(at, i)
		}
	}
	if len(at) < 8 {
		return text, 0
	}
	for _, i := range at[len(at)/2:] {
		lines[i] = acked.ReplaceAllFunc(lines[i], func(m []byte) []byte {
			n := 0
			_, _ = fmt.Sscanf(string(m), `"acked":%d`, &n)
			return fmt.Appendf(nil, `"acked":%d`, n+500)
		})
	}
	return bytes.Join(lines, []byte("\n")), at[len(at)/2] + 1
}

package merge_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/rewrite/merge"
)

const pcaps = "../../testdata/pcaps"

// tapped is one run of two real endpoints with a relay between them, captured
// at both.
type tapped struct {
	name, client, server, truth string
}

func runs(t *testing.T) (list []tapped) {
	t.Helper()
	clients, err := filepath.Glob(filepath.Join(pcaps, "*.client.pcap*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clients {
		name, _, _ := strings.Cut(filepath.Base(c), ".")
		servers, _ := filepath.Glob(filepath.Join(pcaps, name+".server.pcap*"))
		truths, _ := filepath.Glob(filepath.Join(pcaps, name+".truth.jsonl*"))
		if len(servers) == 1 && len(truths) == 1 {
			list = append(list, tapped{name, c, servers[0], truths[0]})
		}
	}
	if len(list) < 60 {
		t.Fatalf("%d runs with both captures, expected those of testdata/pcaps", len(list))
	}
	return list
}

// relayed is what the relay's log says it did to the datagrams of one
// direction.
type relayed struct{ dropped, doubled, made uint64 }

// relay reads the relay's log: c2s and s2c.
func (r *tapped) relay(t *testing.T) (c2s, s2c relayed) {
	t.Helper()
	f, err := os.Open(r.truth)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(r.truth, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	of := map[string]*relayed{"c2s": &c2s, "s2c": &s2c}
	for lines.Scan() {
		var l struct {
			Endpoint, Event, Dir string
			Duplicated           uint64
			Made                 uint64 `json:"truncated_extra"`
			C2S                  uint64 `json:"c2s_duplicated"`
			S2C                  uint64 `json:"s2c_duplicated"`
		}
		if !strings.Contains(lines.Text(), `"relay"`) {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil || l.Endpoint != "relay" {
			continue
		}
		switch l.Event {
		case "drop", "dropped": // counted since the capture began, unlike the totals
			of[l.Dir].dropped++
		case "final":
			of[l.Dir].doubled, of[l.Dir].made = l.Duplicated, l.Made
		case "end":
			c2s.doubled, s2c.doubled = l.C2S, l.S2C
		}
	}
	return c2s, s2c
}

func open(t *testing.T, path string) *capture.Input {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return in
}

var options = analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)}

func put(t *testing.T, a, b analyze.Rewinder) *merge.Merged {
	t.Helper()
	m, err := merge.Merge(a, b, options)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sum adds up the outcomes of the packets that pass tap A first, and of the
// others.
func sum(m *merge.Merged) (way [2]merge.Way) {
	for _, p := range m.Pairs {
		for s, x := range p.Ways {
			w := &way[p.First[s]]
			w.Lost += x.Lost
			w.Copies += x.Copies
			w.Unseen += x.Unseen
			w.Missed += x.Missed
			w.Undecided += x.Undecided
			w.Ambiguous += x.Ambiguous
		}
	}
	return way
}

// otherwise names the runs in which the captures cannot show what the relay's
// log says.
var otherwise = map[string]string{
	"article-chunks-loss25": "slices are sent again as the same bytes: whether the copy or the packet came cannot be told",
	"u210_lobby2": "two clients connect at the same time with the same bytes: which is which is in their " +
		"ports only",
	"upy_reject":     "the same",
	"u210_midstream": "the log begins before the captures do",
	"u200_lobby":     "the client's capture ends while the server sends",
	"upy_timeout":    "one client speaks to a server that has gone: its tap has no packet any more that tells it recorded",
	"t210_midstream": "a stream: the relay loses nothing",
}

// TestLost: the numbers of lost, duplicated and created packets equal those of
// the relay. Captures with one clock show no difference between clocks.
func TestLost(t *testing.T) {
	decided := 0
	for i, r := range runs(t) {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			m := put(t, open(t, r.client), open(t, r.server))
			if off := m.Clock.Offset; m.Clock.Known && off.Abs() > 2*time.Millisecond {
				t.Errorf("the clocks are one; offset %v told", off)
			}
			if math.Abs(m.Clock.Drift) > m.Clock.DriftWithin+20e-6 {
				t.Errorf("the clocks are one; drift %v told, within %v", m.Clock.Drift, m.Clock.DriftWithin)
			}
			if why := otherwise[r.name]; why != "" {
				t.Skip(why)
			}
			decided++
			c2s, s2c := r.relay(t)
			got := sum(m)
			for i, want := range []relayed{c2s, s2c} {
				if g := (relayed{got[i].Lost, got[i].Copies, got[i].Unseen}); g != want {
					t.Errorf("%s: dropped, doubled, made %+v; the relay says %+v",
						[]string{"client to server", "server to client"}[i], g, want)
				}
			}
		})
	}
	if !testing.Short() && decided < 50 {
		t.Errorf("%d runs held against the relay's log, expected more", decided)
	}
}

// set is a source with a shifted and faster clock.
type set struct {
	*capture.Input
	by    time.Duration
	ppm   float64
	keep  func(i uint64, at machine.Instant) bool
	first machine.Instant
	n     uint64
}

func (s *set) Rewind() error { s.n = 0; return s.Input.Rewind() }

func (s *set) Next(f *capture.Frame) error {
	for {
		if err := s.Input.Next(f); err != nil {
			return err
		}
		s.n++
		if s.first == 0 {
			s.first = f.At
		}
		if s.keep != nil && !s.keep(s.n, f.At) {
			continue
		}
		f.At = f.At.Add(s.by + time.Duration(float64(f.At.Sub(s.first))*s.ppm*1e-6))
		return nil
	}
}

// TestClock: the offset and the drift of a clock are found.
func TestClock(t *testing.T) {
	estimated := 0
	for i, r := range runs(t) {
		if testing.Short() && i%6 != 0 || !testenv.Required() && i%2 != 0 {
			continue
		}
		for _, ppm := range []float64{2000, -150} {
			server := &set{Input: open(t, r.server), by: 7654321 * time.Microsecond, ppm: ppm}
			m := put(t, open(t, r.client), server)
			c := &m.Clock
			if !c.Known {
				t.Errorf("%s: no clock", r.name)
				continue
			}
			slack := 20e-6
			if c.Proved {
				slack = 0 // the bounds then hold without slack
			}
			drift := c.Drift - ppm*1e-6
			if math.Abs(drift) > c.DriftWithin+slack {
				t.Errorf("%s: drift %.1f ppm for %.1f, within %.1f", r.name, c.Drift*1e6, ppm, c.DriftWithin*1e6)
			}
			// What the server's clock shows when the client's shows a time in the
			// middle.
			at := server.first.Add(4 * time.Second)
			want := server.by + time.Duration(ppm*1e-6*float64(at.Sub(server.first)))
			shown := c.Offset + time.Duration(c.Drift*float64(at.Sub(c.Reference)))
			if off := shown - want; off.Abs() > c.Within+2*time.Millisecond {
				t.Errorf("%s: offset wrong by %v, within %v", r.name, off, c.Within)
			} else if !c.Proved && math.Abs(drift) < 20e-6 && off.Abs() > 2*time.Millisecond {
				t.Errorf("%s: offset wrong by %v", r.name, off)
			}
			if !c.Proved {
				estimated++
			}
			got := sum(m)
			if why := otherwise[r.name]; why == "" && !c.Proved && got[0].Ambiguous+got[1].Ambiguous == 0 {
				c2s, s2c := r.relay(t)
				if got[0].Lost != c2s.dropped || got[1].Lost != s2c.dropped {
					t.Errorf("%s: %d and %d lost, the relay says %d and %d", r.name, got[0].Lost, got[1].Lost,
						c2s.dropped, s2c.dropped)
				}
			}
		}
	}
	if testenv.Required() && estimated < 30 {
		t.Errorf("%d clocks from enough packets, expected more", estimated)
	}
}

// TestTwoThousand: with enough packets the drift is found within 20 ppm.
func TestTwoThousand(t *testing.T) {
	for _, name := range []string{
		"reliable-clean", "reliable-loss10", "reliable-burst", "plain-le-clean", "crc32-clean",
		"reliable-snap60", "reliable-ipfrag",
	} {
		for _, r := range runs(t) {
			if r.name != name {
				continue
			}
			c := put(t, open(t, r.client), &set{Input: open(t, r.server), by: -3 * time.Second, ppm: 2000}).Clock
			if c.Matches[0] < merge.Matched || c.Matches[1] < merge.Matched {
				t.Fatalf("%s: %v matches", name, c.Matches)
			}
			if off := math.Abs(c.Drift - 2000e-6); off > 20e-6 {
				t.Errorf("%s: drift %.1f ppm, expected 2000", name, c.Drift*1e6)
			}
		}
	}
}

// TestEnds: a packet that passes while the other tap does not record is not
// lost. Nor is a packet that a tap misses, if it was received.
func TestEnds(t *testing.T) {
	client, server := filepath.Join(pcaps, "reliable-loss10.client.pcap.gz"),
		filepath.Join(pcaps, "reliable-loss10.server.pcap.gz")
	whole := sum(put(t, open(t, client), open(t, server)))
	begin := put(t, open(t, client), open(t, server)).Clock.Reference
	for name, keep := range map[string]func(uint64, machine.Instant) bool{
		"stops early":  func(_ uint64, at machine.Instant) bool { return at.Sub(begin) < 12*time.Second },
		"begins late":  func(_ uint64, at machine.Instant) bool { return at.Sub(begin) > 5*time.Second },
		"misses 1/100": func(i uint64, _ machine.Instant) bool { return i%100 != 50 },
	} {
		m := put(t, open(t, client), &set{Input: open(t, server), keep: keep})
		got := sum(m)
		for i := range got {
			if got[i].Lost > whole[i].Lost+10 {
				t.Errorf("%s: %d lost, of the whole %d", name, got[i].Lost, whole[i].Lost)
			}
		}
		if name == "misses 1/100" {
			if got[0].Missed < 8 || got[1].Unseen < 8 {
				t.Errorf("%s: %d missed, %d seen downstream only; expected about 11 of either", name, got[0].Missed, got[1].Unseen)
			}
		} else if got[0].Undecided < 200 {
			t.Errorf("%s: %d undecided, expected some hundreds", name, got[0].Undecided)
		}
	}
}

// TestSwapped: the order of the captures changes only the names.
func TestSwapped(t *testing.T) {
	client, server := filepath.Join(pcaps, "reliable-dup10.client.pcap.gz"),
		filepath.Join(pcaps, "reliable-dup10.server.pcap.gz")
	ab, ba := sum(put(t, open(t, client), open(t, server))), sum(put(t, open(t, server), open(t, client)))
	if ab[0] != ba[1] || ab[1] != ba[0] {
		t.Errorf("client first: %+v, server first: %+v", ab, ba)
	}
}

// TestStrangers: captures of different runs have nothing in common.
func TestStrangers(t *testing.T) {
	_, err := merge.Merge(open(t, filepath.Join(pcaps, "reliable-loss10.client.pcap.gz")),
		open(t, filepath.Join(pcaps, "u210_loss10.server.pcap.gz")), options)
	if err == nil || !strings.Contains(err.Error(), "no packet of one capture is in the other") {
		t.Errorf("%v, expected that they have nothing in common", err)
	}
}

// TestRoom: two captures whose packets do not fit are refused with an
// explanation.
func TestRoom(t *testing.T) {
	a, b := open(t, pcaps+"/reliable-dup10.client.pcap.gz"), open(t, pcaps+"/reliable-dup10.server.pcap.gz")
	o := options
	o.Limits = analyze.Limits{Bytes: 24 << 10, Room: true}
	m, err := merge.Merge(a, b, o)
	if m != nil || err == nil || !strings.Contains(err.Error(), "take too much memory: give more by --memory") {
		t.Errorf("%v, %v: expected a word of too much memory", m, err)
	}
}

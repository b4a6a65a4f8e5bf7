package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// relayLoss counts the datagrams that reached the relay between the endpoints,
// and those that it dropped, as it logged them.
type relayLoss struct{ in, dropped [2]float64 } // client to server, server to client

// share returns the greater share of loss of the two directions, 0 to 1, and
// the datagrams of that direction.
func (l *relayLoss) share() (worst, in float64) {
	for i := range l.in {
		if l.in[i] > 0 && l.dropped[i]/l.in[i] >= worst {
			worst, in = l.dropped[i]/l.in[i], l.in[i]
		}
	}
	return worst, in
}

// relayLossOf reads the totals from a log. It returns false if the log has
// none.
func relayLossOf(t *testing.T, path string) (l relayLoss, ok bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(`"endpoint":"relay"`)) {
			continue
		}
		var x struct {
			Event, Dir string
			In         float64 `json:"datagrams_in"`
			Dropped    float64
			C2SIn      float64 `json:"c2s_in"`
			C2SDropped float64 `json:"c2s_dropped"`
			S2CIn      float64 `json:"s2c_in"`
			S2CDropped float64 `json:"s2c_dropped"`
		}
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		switch {
		case x.Event == "final" && x.Dir != "":
			way := slices.Index([]string{"c2s", "s2c"}, x.Dir)
			l.in[way], l.dropped[way], ok = x.In, x.Dropped, true
		case x.Event == "end":
			l.in, l.dropped, ok = [2]float64{x.C2SIn, x.S2CIn}, [2]float64{x.C2SDropped, x.S2CDropped}, true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return l, ok
}

// lossUnseen lists captures whose relay dropped 3 % but that show no steady
// loss, and why.
var lossUnseen = map[string]string{
	"reliable-burst.client":           "outages only: loss-burst tells them",
	"reliable-burst.server":           "outages only: loss-burst tells them",
	"article-fragments-loss5.client":  "the sample program sends no acks, and nothing follows its numbers",
	"article-fragments-loss5.server":  "the sample program sends no acks, and nothing follows its numbers",
	"yojimbo-packet-fragments.client": "lost on the way to the server: the acks that would tell are encrypted",
	"u210_poor_reliable.server":       "the connection ends before enough messages can be judged",
	"upy_cs221_server.client":         "one side is Pytide: too few of its messages can be judged",
}

// The rule fires in every capture whose relay dropped 3 % or more, and in none
// whose relay dropped nothing.
func TestSteadyLoss(t *testing.T) {
	testenv.Grid(t, "every capture that has a log")
	folder := filepath.Dir(testenv.Capture(t, "README.md"))
	logs, err := filepath.Glob(filepath.Join(folder, "*.truth.jsonl.gz"))
	if err != nil || len(logs) < 100 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	lossy, clean := 0, 0
	for _, log := range logs {
		base := strings.TrimSuffix(filepath.Base(log), ".truth.jsonl.gz")
		loss, ok := relayLossOf(t, log)
		if !ok {
			continue
		}
		share, in := loss.share()
		captures, err := filepath.Glob(filepath.Join(folder, base+".*.pcap*.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range captures {
			name := base + "." + strings.Split(filepath.Base(path)[len(base)+1:], ".")[0]
			found := strings.Contains(output(t, "findings", "--json", path), `"rule":"steady-loss"`)
			switch {
			case share >= 0.03 && in >= 167:
				lossy++
				if _, excused := lossUnseen[name]; found == excused {
					t.Errorf("%s: the relay dropped %.1f %% of %.0f datagrams: steady-loss %v", name, 100*share, in, found)
				}
			case share == 0:
				clean++
				if found {
					t.Errorf("%s: the relay dropped nothing, and steady-loss fires", name)
				}
			}
		}
	}
	if lossy < 60 || clean < 60 {
		t.Errorf("%d lossy and %d clean captures: expected at least 60 of each", lossy, clean)
	}
}

// In simulated runs the rule fires if the simulation loses packets. It does not
// fire in a lossless run, however late and duplicated packets are.
func TestSteadyLossSimulated(t *testing.T) {
	for _, protocol := range []string{"gaffer:reliable", "gaffer:article", "riptide:2.1", "riptide:2.0", "srdp"} {
		for _, tap := range []string{"a", "b"} {
			for seed := range 2 {
				for _, c := range []struct {
					want bool
					path []string
				}{
					{false, []string{"--jitter", "5ms"}},
					{false, []string{"--jitter", "60ms", "--dup", "5%"}},
					{true, []string{"--jitter", "5ms", "--loss", "10%"}},
				} {
					path := filepath.Join(t.TempDir(), "run.pcapng")
					output(t, append([]string{
						"simulate", "-q", "--protocol", protocol, "--seed", strconv.Itoa(seed), "--delay", "30ms", "--duration", "20s",
						"--rate", "30", "--tap", tap, "-w", path,
					}, c.path...)...)
					text := output(t, "findings", "--json", path)
					if found := strings.Contains(text, `"rule":"steady-loss"`); found != c.want {
						t.Errorf("%s, tap %s, seed %d, %s: steady-loss %v\n%s", protocol, tap, seed, c.path, found,
							output(t, "findings", path))
					}
				}
			}
		}
	}
}

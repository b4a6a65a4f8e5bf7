// Package onepass holds what a live analysis says, which reads packets once, against what package unit says, which
// reads a capture twice.
package onepass

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/live"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/protocols"
	"github.com/ackscope/ackscope/unit"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// relay: a flow's first packets wait until they show its protocol. Those of another flow are then read after them, so
// what one relays to the other is not seen. In the second run all protocols are known.
var relay = []string{"riptide-relay"}

// later are the captures of which later packets decide some findings, with the rules that differ. Their flows are
// equal. A second run knows from its first packet on what the first run learned of the whole.
var later = map[string][]string{
	"u200_lobby.client.pcap.gz": relay, "u200_lobby.server.pcapng.gz": relay, "u210_lobby.client.pcap.gz": relay,
	"u210_lobby.server.pcapng.gz": relay, "u210_three_noquality.client.pcap.gz": relay,
	"u212_lobby.client.pcap.gz": relay, "u212_lobby.server.pcapng.gz": relay, "u21n_three.client.pcap.gz": relay,
	"u21n_three.server.pcapng.gz": relay, "u221_lobby.client.pcapng.gz": relay, "u221_lobby.server.pcap.gz": relay,

	// Where the tap stood: see told.
	"u210_falseack.client.pcap.gz": {
		"riptide-quality-limit", "riptide-quality-warning", "riptide-resent-ack-lost", "riptide-resent-late-ack",
		"steady-loss",
	},
	"u21d_gap64.client.pcap.gz": {
		"riptide-acked-not-delivered", "riptide-delivered-twice", "riptide-false-ack", "riptide-window-jump",
	},
	"u21n_gap.client.pcap.gz":                     {"riptide-window-jump"},
	"upy_cs210_server.client.pcap.gz":             {"riptide-pytide-notify"},
	"yojimbo-testmsgs-loss10.client.pcap.gz":      {"steady-loss"},
	"yojimbo-testmsgs-loss10.server.pcap.gz":      {"steady-loss"},
	"simulated srdp with a loss of 5%":            {"steady-loss"},
	"simulated riptide:2.2.1 with a loss of 5%":   nil,
	"simulated gaffer:reliable with a loss of 5%": nil,

	// Which library a side has: a jump of the window is none of Pytide.
	"upy_gap.server.pcap.gz": {"riptide-pytide", "riptide-window-jump", "steady-loss"},
}

// told are the places of the tap of those captures of which only the place decides. A live analysis that is told of it
// finds what the second run finds.
var told = map[string]machine.Vantage{
	"u210_falseack.client.pcap.gz": machine.VantageA, "u21d_gap64.client.pcap.gz": machine.VantageA,
	"u21n_gap.client.pcap.gz": machine.VantageA, "upy_cs210_server.client.pcap.gz": machine.VantageA,
	"yojimbo-testmsgs-loss10.client.pcap.gz": machine.VantageA, "yojimbo-testmsgs-loss10.server.pcap.gz": machine.VantageB,
}

// table is what is known of a capture: rows of flows and of findings as text, without the names of files.
type table [2][]string

func (x *table) add(i int, s *export.Schema, cells []export.Cell) {
	var b strings.Builder
	for n := range cells {
		if c := &cells[n]; c.Set && s.Columns[n].Name != "file" {
			fmt.Fprintf(&b, "%s=%s %d %v\t", s.Columns[n].Name, c.Bytes, c.Int, c.Float)
		}
	}
	x[i] = append(x[i], b.String())
}

// twice reads a capture as package unit does.
func twice(t *testing.T, path string) (x table) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	in := unit.Input{Name: path, Size: int64(len(b)), Reader: bytes.NewReader(b)}
	r, err := unit.Analyze(t.Context(), path, []unit.Input{in}, unit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, rows := range [][]unit.Row{r.Flows, r.Findings} {
		s := []*export.Schema{&export.Flows.Schema, &export.Findings.Schema}[i]
		cells := s.Cells()
		for n := range rows {
			if err := s.ReadRow(rows[n].Cells, cells); err != nil {
				t.Fatal(err)
			}
			x.add(i, s, cells)
		}
	}
	return x
}

// once reads a capture as a sensor does, which may be told where the tap stands.
func once(t *testing.T, path string, place *machine.Vantage) (x table) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	flows, findings := export.Flows.Cells(), export.Findings.Cells()
	_, err = live.Run(t.Context(), in, live.Options{
		Analysis: analyze.Options{
			Registry: protocols.Default(), Limits: analyze.LiveLimits, Found: func(*analyze.Finding) {}, Vantage: place,
		},
		Ended: func(f *analyze.Flow, _ live.Why) {
			export.Flows.Fill(&export.FlowRow{Flow: f}, flows)
			x.add(0, &export.Flows.Schema, flows)
			for _, found := range f.Findings() {
				export.Findings.Fill(&export.FindingRow{Finding: found}, findings)
				x.add(1, &export.Findings.Schema, findings)
			}
		},
	})
	var cut *capture.CutError
	if err != nil && !errors.As(err, &cut) {
		t.Fatal(err)
	}
	return x
}

// apart returns the rows that only one of two lists has.
func apart(a, b []string) (rows []string) {
	rows = slices.Clone(b)
	for _, row := range a {
		if i := slices.Index(rows, row); i >= 0 {
			rows = slices.Delete(rows, i, i+1)
		} else {
			rows = append(rows, row)
		}
	}
	return rows
}

// paths returns all recorded captures, and one that is simulated of each protocol, by names.
func paths(t *testing.T) map[string]string {
	t.Helper()
	recorded, err := filepath.Glob(filepath.Join(filepath.Dir(testenv.Capture(t, "README.md")), "*.pcap*.gz"))
	if err != nil || len(recorded) < 200 {
		t.Fatal(len(recorded), err)
	}
	all := map[string]string{}
	for _, path := range recorded {
		all[filepath.Base(path)] = path
	}
	for i, protocol := range []string{"gaffer:reliable", "riptide:2.2.1", "srdp"} {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.pcapng", i))
		said, err := exec.Command(testenv.Ackscope(t), "simulate", "-q", "--protocol", protocol, "--duration", "5s", "--loss",
			"5%", "-w", path).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		all["simulated "+protocol+" with a loss of 5%"] = path
	}
	return all
}

// TestOnce: a live analysis says of each flow what is said of a file, and finds the same. The exceptions are the
// findings of which later packets decide.
func TestOnce(t *testing.T) {
	all, rows := paths(t), 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, b := twice(t, all[name]), once(t, all[name], nil)
		rows += len(a[0]) + len(a[1])
		if differ := apart(a[0], b[0]); len(differ) > 0 {
			t.Errorf("%s: flows differ:\n%s", name, strings.Join(differ, "\n"))
		}
		found := map[string]bool{}
		for _, row := range apart(a[1], b[1]) {
			_, rule, _ := strings.Cut(row, "\trule=")
			rule, _, _ = strings.Cut(rule, " ")
			found[rule] = true
		}
		if rules := slices.Sorted(maps.Keys(found)); !slices.Equal(rules, later[name]) {
			t.Errorf("%s: findings differ of %v, expected %v", name, rules, later[name])
		}
		if place, ok := told[name]; ok {
			if differ := apart(a[1], once(t, all[name], &place)[1]); len(differ) > 0 {
				t.Errorf("%s: findings differ though the place is known:\n%s", name, strings.Join(differ, "\n"))
			}
		}
	}
	for name := range later {
		if all[name] == "" {
			t.Errorf("there is no capture %s", name)
		}
	}
	if rows < 1000 {
		t.Errorf("only %d rows were compared", rows)
	}
	t.Logf("%d captures with %d rows", len(all), rows)
}

package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/protocol/gaffer"
	"github.com/ackscope/ackscope/cli/protocol/riptide"
	"github.com/ackscope/ackscope/cli/protocol/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/web/engine"
)

func open(t *testing.T, args ...string) *engine.Engine {
	t.Helper()
	e := engine.New(protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol})
	var said bytes.Buffer
	if code := e.Open(args, &said); code != 0 {
		t.Fatalf("exit code %d: %s", code, said.Bytes())
	}
	t.Cleanup(e.Close)
	return e
}

// command returns the lines that a command prints.
func command(t *testing.T, e *engine.Engine, args ...string) []string {
	t.Helper()
	var out, said bytes.Buffer
	if code := e.Run(args, &out, &said); code == 2 {
		t.Fatalf("%q: %s", args, said.Bytes())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// rows returns the packets of rows, each as its own JSON.
func rows(t *testing.T, e *engine.Engine, first, count int) (list []string) {
	t.Helper()
	var out bytes.Buffer
	if err := e.Rows(&out, first, count); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(&out)
	for d.More() {
		var row struct {
			Packets []json.RawMessage `json:"packets"`
		}
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		for _, p := range row.Packets {
			list = append(list, string(p))
		}
	}
	return list
}

// Windows at random places have the rows that `packets --json` prints, in every capture of
// testdata that is small.
func TestRowsAtRandom(t *testing.T) {
	list, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "*.client.pcap.gz"))
	if err != nil || len(list) < 20 {
		t.Fatalf("%d captures: %v", len(list), err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	if !testenv.Whole() {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		list = list[:6]
	}
	for _, path := range list {
		t.Run(filepath.Base(path), func(t *testing.T) {
			e := open(t, path)
			want := map[float64][]string{} // by the frame that was read when the line was printed
			var waiting []string           // messages whose frames came earlier
			for _, line := range command(t, e, "packets", "--json", path) {
				if waiting = append(waiting, line); strings.Contains(line, `"captured":`) {
					n := frameOf(t, line)
					want[n], waiting = append(want[n], waiting...), nil
				}
			}
			for range 8 {
				from := random.IntN(e.Len())
				var expected []string
				for n := from; n < min(from+30, e.Len()); n++ {
					expected = append(expected, want[float64(n+1)]...)
				}
				if got := rows(t, e, from, 30); !slices.Equal(got, expected) {
					t.Errorf("30 rows from %d:\n%s", from, firstDifference(got, expected))
				}
			}
		})
	}
}

func frameOf(t *testing.T, line string) float64 {
	t.Helper()
	var p struct {
		Frame float64 `json:"frame"`
	}
	if err := json.Unmarshal([]byte(line), &p); err != nil {
		t.Fatal(err)
	}
	return p.Frame
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			at := 0
			for at < min(len(got[i]), len(want[i])) && got[i][at] == want[i][at] {
				at++
			}
			at = max(at-80, 0)
			return fmt.Sprintf("row  …%.300s\nfrom …%.300s", got[i][at:], want[i][at:])
		}
	}
	return fmt.Sprintf("%d rows, expected %d", len(got), len(want))
}

// A filter leaves the rows that -Y leaves, and a wrong one says where it is wrong.
func TestFilter(t *testing.T) {
	path := testenv.Capture(t, "oldreliable-loss20-reorder.client.pcap.gz")
	e := open(t, path)
	all := e.Len()
	for _, text := range []string{"fate == lost", "frame.number in {900..950}", "frame.number == 0", "flow.rtt > 100ms"} {
		var said bytes.Buffer
		if code := e.Filter(text, 1, &said); code != 0 {
			t.Fatalf("%s: %s", text, said.Bytes())
		}
		var want []string
		if lines := command(t, e, "packets", "--json", "-Y", text, path); lines[0] != "" {
			want = lines
		}
		if got := rows(t, e, 0, e.Len()); len(got) != len(want) || len(got) > 0 && frameOf(t, got[0]) != frameOf(t, want[0]) {
			t.Errorf("%s: %d rows, expected %d", text, len(got), len(want))
		}
	}
	var said bytes.Buffer
	if code := e.Filter("frame.numbr == 1", 0, &said); code == 0 || !strings.Contains(said.String(), "frame.number") {
		t.Errorf("a wrong filter: exit code %d, %q", code, said.String())
	}
	if code := e.Filter(" ", 0, &said); code != 0 || e.Len() != all {
		t.Errorf("no filter: exit code %d, %d rows of %d", code, e.Len(), all)
	}
	if row, ok := e.Row(247); !ok || row != 246 {
		t.Errorf("frame 247 is row %d", row)
	}
	if _, ok := e.Row(all + 1); ok {
		t.Errorf("there is a frame %d", all+1)
	}
}

// The state at entries and at moments is the one that `state --json` prints.
func TestState(t *testing.T) {
	path := testenv.Capture(t, "u210_timeout_kill.client.pcap.gz")
	e := open(t, path)
	for _, since := range []int64{0, 4e9, 9e9, 1e18} {
		entry := e.At(since)
		var out bytes.Buffer
		if err := e.State(&out, 1, entry); err != nil {
			t.Fatal(err)
		}
		want := strings.Join(command(t, e, "state", "--json", "--flow", "1", "--at", fmt.Sprint(entry+1), path), "\n") + "\n"
		if out.String() != want {
			t.Errorf("after %d ns, entry %d: another state than the command prints", since, entry)
		}
	}
	var out bytes.Buffer
	if err := e.State(&out, 1, e.Len()); err == nil {
		t.Error("there is a state after the end")
	}
	if err := e.Packet(&out, 10); err != nil || !strings.Contains(out.String(), `"layers":[`) {
		t.Errorf("a packet: %v, %.200s", err, out.Bytes())
	}
}

// Steps along a flow stay in it, and the packets around one are in order.
func TestAlongFlow(t *testing.T) {
	e := open(t, testenv.Capture(t, "u210_timeout_kill.client.pcap.gz"))
	for flow := 1; flow <= 2; flow++ {
		seen := 0
		for n := e.Beside(flow, -1, 1); n >= 0; n = e.Beside(flow, n, 1) {
			if before := e.Beside(flow, n, -1); before >= n || seen == 0 && before >= 0 {
				t.Fatalf("flow %d: entry %d is before %d", flow, before, n)
			}
			seen++
		}
		if want := map[int]int{1: 328, 2: 553}[flow]; seen != want {
			t.Errorf("flow %d has %d packets, expected %d", flow, seen, want)
		}
	}
	var out bytes.Buffer
	if err := e.Around(&out, 2, 300, 20); err != nil {
		t.Fatal(err)
	}
	last, count := 0.0, 0
	for line := range strings.Lines(out.String()) {
		var row struct {
			Leaves  float64 `json:"leaves_ns"`
			Arrives float64 `json:"arrives_ns"`
			Packets []struct {
				Frame float64 `json:"frame"`
				Flow  int     `json:"flow"`
				Side  string  `json:"side"`
			} `json:"packets"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		// The capture was taken at A: A's packets leave when it has them, and B's arrive then.
		atTap := map[string]float64{"a": row.Leaves, "b": row.Arrives}[row.Packets[0].Side]
		if way := row.Arrives - row.Leaves; atTap != 0 || way < 1e6 || way > 50e6 {
			t.Errorf("frame %v of %s leaves %v ns and arrives %v ns after the tap has it", row.Packets[0].Frame,
				row.Packets[0].Side, row.Leaves, row.Arrives)
		}
		if p := row.Packets[0]; p.Flow != 2 || p.Frame <= last {
			t.Errorf("frame %v of flow %d after frame %v", p.Frame, p.Flow, last)
		}
		last = row.Packets[0].Frame
		count++
	}
	if count != 40 && count != 41 {
		t.Errorf("%d packets around one, expected 40 or 41", count)
	}
	if e.Beside(1, 1<<40, 1) >= 0 || e.Beside(1, 3, 2) >= 0 {
		t.Error("a step from nowhere led somewhere")
	}
}

// A page that runs for hours holds no more memory than at its start. It lets go of what a command
// read, and of a capture when the next one opens.
func TestLetsGo(t *testing.T) {
	path := testenv.Capture(t, "u210_timeout_kill.client.pcap.gz")
	e := engine.New(protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol})
	// Each command leaves its flags, about 75 kB. Without Forget it leaves 1.7 to 7 MB.
	const most, rounds = 200 << 10, 20
	for _, args := range [][]string{
		{"overview", "--json", path}, {"graph", "-k", "rtt", "--flow", "1", "-o", "-", path}, {"replay", "--json", path}, nil,
	} {
		var before, after runtime.MemStats
		for n := range 3 + rounds {
			if n == 3 {
				runtime.GC()
				runtime.ReadMemStats(&before)
			}
			var out, said bytes.Buffer
			if args != nil {
				e.Run(args, &out, &said)
			} else if code := e.Open([]string{path}, &said); code != 0 {
				t.Fatal(said.String())
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > rounds*most {
			t.Errorf("%q: %d kB more after each", args, grown/rounds>>10)
		}
	}
	e.Close()
}

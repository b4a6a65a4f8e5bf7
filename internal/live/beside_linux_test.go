package live

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
)

const cgoRing = "ACKSCOPE_TEST_CGORING" // built by the first run

// rival is a capturing program, with a ring of 64 MiB.
type rival struct {
	name string
	args []string // FILE is the file that it writes
}

// outcome is the result of one round of a rival.
type outcome struct {
	sent, captured, dropped uint64
	cpu                     time.Duration
}

func (o outcome) lost() float64 {
	return 100 * float64(o.sent-min(o.sent, o.captured)) / float64(max(1, o.sent))
}

// TestBesideOthers compares ackscope with tcpdump and with gopacket's cgo ring.
// Each captures a flood of small packets, 300,000 a second or what the machine
// can send. They take turns for five rounds, and the test prints the medians.
// It fails only if a packet is uncounted. It needs ACKSCOPE_BENCH_LIVE: `make
// benchlive`.
func TestBesideOthers(t *testing.T) {
	if os.Getenv("ACKSCOPE_BENCH_LIVE") == "" {
		t.Skip("a benchmark: make benchlive runs it")
	}
	tcpdump := testenv.Need(t, "tcpdump")
	ring := os.Getenv(cgoRing)
	if ring == "" {
		testenv.Need(t, "gcc")
		ring = filepath.Join(t.TempDir(), "cgoring")
		build := exec.Command("go", "build", "-tags", "cgoring", "-o", ring, "./internal/live/cgoring")
		build.Dir, build.Env = testenv.Module(t), append(os.Environ(), "CGO_ENABLED=1")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("cgoring: %v\n%s", err, out)
		}
	}
	if !testnet.NamespacedRoot(t, built+"="+program(t), cgoRing+"="+ring) {
		return
	}
	rivals := []rival{
		{"ackscope capture -w", []string{
			program(t), "capture", "-q", "-Z", testenv.AsUser, "-i", "veth0", "-w", "FILE",
			"--json", "-B", "64",
		}},
		{"tcpdump -w", []string{tcpdump, "-i", "veth0", "-B", "65536", "-w", "FILE"}},
		{"gopacket afpacket, cgo", []string{ring, "veth0", "FILE", "64"}},
		{"ackscope flows", []string{program(t), "flows", "-Z", testenv.AsUser, "-i", "veth0", "-B", "64", "-w", "FILE"}},
	}
	rounds, err := strconv.Atoi(os.Getenv("ACKSCOPE_BENCH_LIVE"))
	if err != nil || rounds < 1 {
		rounds = 5
	}
	results := make([][]outcome, len(rivals))
	for range rounds {
		for i := range rivals {
			results[i] = append(results[i], race(t, &rivals[i]))
		}
	}
	for i, list := range results {
		slices.SortFunc(list, func(a, b outcome) int { return int(1e6 * (a.lost() - b.lost())) })
		m := list[len(list)/2]
		slices.SortFunc(list, func(a, b outcome) int { return int(a.cpu - b.cpu) })
		t.Logf("%-24s %9d sent (%.0f a second), %9d captured, %6d dropped: %.3f %% lost; CPU %v, %d ns a packet (medians "+
			"of %d)", rivals[i].name, m.sent, float64(m.sent)/floodTime.Seconds(), m.captured, m.dropped, m.lost(),
			list[len(list)/2].cpu.Round(time.Millisecond), list[len(list)/2].cpu.Nanoseconds()/int64(max(1, m.captured)), rounds)
	}
}

var tcpdumpSays = regexp.MustCompile(`(\d+) packets? (captured|dropped by kernel)`)

const floodTime = 3 * time.Second

// floodRate returns packets a second: ACKSCOPE_BENCH_RATE, or 300,000.
func floodRate(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ACKSCOPE_BENCH_RATE")
	if text == "" {
		return 300_000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("ACKSCOPE_BENCH_RATE=%s: expected packets a second", text)
	}
	return n
}

// race runs one round of a rival.
func race(t *testing.T, r *rival) (o outcome) {
	t.Helper()
	dir := testenv.UserDir(t)
	args := slices.Clone(r.args)
	for i, a := range args {
		if a == "FILE" {
			args[i] = filepath.Join(dir, "captured")
		}
	}
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = said, said
	start(t, cmd)
	time.Sleep(700 * time.Millisecond) // only a sleep works for all of them
	o.sent = flood(t, testnet.Inject(t, "veth1"), floodRate(t), floodTime)
	time.Sleep(300 * time.Millisecond)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	o.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	text, err := os.ReadFile(said.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range tcpdumpSays.FindAllStringSubmatch(strings.ReplaceAll(string(text), ",", ""), -1) {
		n, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if m[2] == "captured" {
			o.captured = n
		} else {
			o.dropped = n
		}
	}
	for line := range strings.Lines(string(text)) {
		var v struct{ Captured, Dropped uint64 }
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &v) == nil && v.Captured > 0 {
			o.captured, o.dropped = v.Captured, v.Dropped
		}
	}
	if o.captured+o.dropped < o.sent { // an interrupted tcpdump leaves packets in its ring
		said := fmt.Sprintf("%s: of %d packets %d were captured and %d dropped", r.name, o.sent, o.captured, o.dropped)
		if strings.HasPrefix(r.name, "ackscope") {
			t.Error(said)
		} else {
			t.Log(said)
		}
	}
	return o
}

package batches

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/folders"
	"github.com/ackscope/ackscope/internal/testenv"
)

// few returns some of the recorded captures.
func few(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(filepath.Dir(testenv.Capture(t, "README.md")), "*.pcap*.gz"))
	if err != nil || len(all) < 200 {
		t.Fatalf("%d captures, %v", len(all), err)
	}
	var list []string
	for i := 0; i < len(all); i += len(all) / 24 {
		list = append(list, all[i])
	}
	return list
}

// TestSameBytes: the order of the captures, the number of workers and shares change no byte. A run
// that follows another one analyses what is new only, and removes what it replaces.
func TestSameBytes(t *testing.T) {
	captures, folder := few(t), t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	batch := func(out string, more ...string) string {
		said, _ := run(t, 0, append([]string{"batch", "-q", "-o", at(out)}, more...)...)
		return said
	}
	batch("want", append([]string{"--threads", "1"}, captures...)...)
	shuffled := slices.Clone(captures)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	batch("order", append([]string{"--threads", "3"}, shuffled...)...)
	folders.Same(t, "another order and number of workers", at("order"), at("want"))

	for i := range 3 {
		said := batch("shares", append([]string{"--share", fmt.Sprintf("%d/3", i)}, captures...)...)
		if strings.Contains(said, " 0 analysed") {
			t.Errorf("share %d has nothing: %s", i, said)
		}
		if _, err := os.Stat(at("shares/summary.json")); err == nil {
			t.Error("a share wrote the tables")
		}
	}
	if said := batch("shares", append([]string{"--combine"}, captures...)...); !strings.Contains(said, " 0 analysed") {
		t.Errorf("--combine: %s", said)
	}
	folders.Same(t, "three shares", at("shares"), at("want"))

	batch("grown", captures[:10]...)
	want := fmt.Sprintf("%d analysed now, 10 kept", len(captures)-10)
	if said := batch("grown", captures...); !strings.Contains(said, want) {
		t.Errorf("it said %q, expected %q", said, want)
	}
	folders.Same(t, "more captures", at("grown"), at("want"))

	_, complaint := run(t, 2, append([]string{"batch", "--combine", "-o", at("none")}, captures...)...)
	if !strings.Contains(complaint, fmt.Sprintf("%d of %[1]d captures", len(captures))) {
		t.Errorf("--combine of nothing said %q", complaint)
	}
	_, complaint = run(t, 2, "batch", "-o", filepath.Dir(captures[0]), captures[0])
	if !strings.Contains(complaint, "something else") {
		t.Errorf("a folder of something else: %q", complaint)
	}
}

// TestKilled kills a run at any time, and runs it again.
func TestKilled(t *testing.T) {
	captures, folder := few(t), t.TempDir()
	out, want := filepath.Join(folder, "out"), filepath.Join(folder, "want")
	began := time.Now()
	run(t, 0, append([]string{"batch", "-q", "-o", want}, captures...)...)
	took := time.Since(began)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args, killed := append([]string{"batch", "-q", "-o", out}, captures...), 0
	random := rand.New(rand.NewPCG(3, 4))
	for range testenv.Rounds(6, 20, 100) {
		command := exec.Command(program, args...)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(took))))
		_ = command.Process.Kill() // it may have ended
		if err := command.Wait(); err != nil {
			killed++
			continue
		}
		if err := os.RemoveAll(out); err != nil { // the next run would have nothing to do
			t.Fatal(err)
		}
	}
	if killed == 0 {
		t.Fatal("no run was killed")
	}
	run(t, 0, args...)
	folders.Same(t, "killed and run again", out, want)
	// A power loss can leave a segment torn anywhere.
	segments, err := filepath.Glob(filepath.Join(out, ".batch", "*.segment"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	for _, path := range segments {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, random.Int64N(info.Size()+1)); err != nil {
			t.Fatal(err)
		}
	}
	run(t, 0, args...)
	folders.Same(t, "torn and run again", out, want)
}

// TestQuarantine: a capture that ends its worker three times is named, and the others are analysed.
func TestQuarantine(t *testing.T) {
	captures, out := few(t)[:8], filepath.Join(t.TempDir(), "out")
	bad := filepath.Base(captures[3])
	t.Setenv(fault, "die "+bad)
	for _, analysed := range []string{"8 analysed now, 0 kept", "0 analysed now, 8 kept"} {
		said, complaint := run(t, 2, append([]string{"batch", "-o", out}, captures...)...)
		if !strings.Contains(said, analysed) || !strings.Contains(said, "7 ok, 1 quarantined") ||
			!strings.Contains(complaint, "1 of 8 captures") {
			t.Errorf("it said %q and %q", said, complaint)
		}
	}
	rows := table(t, "capture", filepath.Join(out, "captures.parquet"))
	if len(rows) != 8 || !strings.Contains(strings.Join(rows[captures[3]], ""), "ended 3 times") {
		t.Errorf("captures.parquet has %d captures, and of the bad one %q", len(rows), rows[captures[3]])
	}
}

// TestTimeout: a capture that takes too long is named, and has no rows. Each way to run gives the same
// folder. A longer time tries again, and then no trace is left.
func TestTimeout(t *testing.T) {
	captures, folder := few(t)[:8], t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	batch := func(code int, out, want string, more ...string) {
		t.Helper()
		said, _ := run(t, code, append(append([]string{"batch", "-o", at(out)}, more...), captures...)...)
		if !strings.Contains(said, want) {
			t.Errorf("%s %v: it said %q, expected %q", out, more, said, want)
		}
	}
	bad := captures[3]
	batch(0, "whole", "8 ok;", "--timeout", "1h")
	batch(0, "others", "8 analysed now")
	t.Setenv(fault, "slow "+filepath.Base(bad))
	const told = "7 ok, 1 timeout"
	batch(2, "late", told, "--timeout", "1h")
	batch(2, "late", "0 analysed now, 8 kept", "--timeout", "1h")
	batch(2, "late", "0 analysed now, 8 kept", "--timeout", "30m", "--threads", "1")
	for _, share := range []string{"1/2", "0/2"} {
		batch(0, "shares", "", "--timeout", "1h", "--share", share)
	}
	batch(2, "shares", told, "--combine")
	folders.Same(t, "two shares", at("shares"), at("late"))
	batch(0, "others", "0 analysed now, 8 kept", "--timeout", "1s") // it bounds only what is analysed now
	rows := table(t, "capture", filepath.Join(at("late"), "captures.parquet"))
	if text := strings.Join(rows[bad], ""); !strings.Contains(text, "did not end within 1h0m0s") ||
		!strings.Contains(text, ":timeout") || !strings.Contains(text, ":time\n") {
		t.Errorf("captures.parquet says %q", text)
	}
	for _, name := range []string{"flows", "findings"} {
		if rows := table(t, "file", parts(t, at("late"), name)...); len(rows) == 0 || len(rows[bad]) > 0 {
			t.Errorf("%s: %d captures have rows, and the late one %d", name, len(rows), len(rows[bad]))
		}
	}
	_, complaint := run(t, 2, append([]string{"batch", "-o", at("late"), "--combine"}, captures...)...)
	if !strings.Contains(complaint, "1 of 8 captures") {
		t.Errorf("it said %q", complaint)
	}
	t.Setenv(fault, "")
	batch(2, "shares", told, "--timeout", "1h") // it is not tried again with the same time
	batch(0, "late", "1 analysed now, 7 kept", "--timeout", "2h")
	folders.Same(t, "a longer time", at("late"), at("whole"))
	batch(0, "shares", "1 analysed now, 7 kept")
	folders.Same(t, "no bound", at("shares"), at("whole"))
}

// TestHang: a worker that hangs is killed, and its capture set apart like one that ends its worker.
func TestHang(t *testing.T) {
	captures, out := few(t)[:8], filepath.Join(t.TempDir(), "out")
	args := func(more ...string) []string { return append([]string{"batch", "-o", out}, more...) }
	run(t, 0, args(captures[1:]...)...)
	t.Setenv(fault, "hang "+filepath.Base(captures[0]))
	for _, analysed := range []string{"1 analysed now, 7 kept", "0 analysed now, 8 kept"} {
		said, complaint := run(t, 2, args(append(captures, "--timeout", "10ms")...)...)
		if !strings.Contains(said, analysed) || !strings.Contains(said, "7 ok, 1 quarantined") ||
			!strings.Contains(complaint, "1 of 8 captures") {
			t.Errorf("it said %q and %q", said, complaint)
		}
	}
}

// TestUnread: a capture whose bytes do not come is named, and tried again by the next run.
func TestUnread(t *testing.T) {
	folder := t.TempDir()
	late, out := filepath.Join(folder, "late.pcapng"), filepath.Join(folder, "out")
	whole := simulated(t, filepath.Join(folder, "in", "whole.pcapng"))
	if said, _ := run(t, 2, "batch", "-o", out, late, whole); !strings.Contains(said, "1 ok, 1 unread") {
		t.Errorf("it said %q", said)
	}
	simulated(t, late, "--seed", "2")
	if said, _ := run(t, 0, "batch", "-o", out, late, whole); !strings.Contains(said, "1 analysed now, 1 kept") {
		t.Errorf("it said %q", said)
	}
}

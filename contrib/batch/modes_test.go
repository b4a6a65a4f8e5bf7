package batch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/internal/folders"
)

// heavy has "1" where the tests that take minutes run (make beam).
const heavy = "ACKSCOPE_BEAM"

// mostTime bounds a job. An engine may wait for ever for a worker that died.
const mostTime = 5 * time.Minute

func needHeavy(t *testing.T) {
	t.Helper()
	if os.Getenv(heavy) == "" {
		t.Skip("make beam runs it: it takes minutes, and builds Prism")
	}
}

// said collects what a process says.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start starts a process that lives as long as the test.
func start(t *testing.T, name string, args ...string) *said {
	t.Helper()
	s := &said{}
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr, c.WaitDelay = s, s, time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%.4000s", filepath.Base(name), s)
		}
	})
	return s
}

// job runs `ackscope-beam run` as a process, within mostTime. It returns what it said, and its error.
func job(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mostTime)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], append([]string{"run"}, args...)...)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("run %v: did not end within %v: %s", args, mostTime, out)
	}
	return string(out), err
}

// finds checks the exit code of a job: 2, as some captures are broken.
func finds(t *testing.T, args ...string) string {
	t.Helper()
	out, err := job(t, args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(out, "could not be read to their end") {
		t.Fatalf("run %v: %v\n%s", args, err, out)
	}
	return out
}

// free returns an address that nothing listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// prism builds Beam's program of its own, starts it, and returns the address of its job service.
func prism(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "prism")
	build := exec.Command("go", "build", "-o", program, "github.com/apache/beam/sdks/v2/go/cmd/prism")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	address := free(t)
	_, port, _ := net.SplitHostPort(address)
	start(t, program, "--job_port="+port, "--serve_http=false", "--log_kind=text")
	listens(t, address)
	return "localhost:" + port
}

// listens waits until an address answers.
func listens(t *testing.T, address string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatal(err)
		}
	}
}

// modes are the ways to run a job on a Prism of its own.
func modes(t *testing.T, endpoint string) map[string][]string {
	t.Helper()
	pool := free(t)
	start(t, os.Args[0], "worker", "--listen", pool)
	listens(t, pool)
	at := func(more ...string) []string {
		return append([]string{"--endpoint", endpoint, "--environment"}, more...)
	}
	return map[string][]string{
		"LOOPBACK": at("LOOPBACK"),
		"PROCESS":  at("PROCESS"),
		"EXTERNAL": at("EXTERNAL", "--environment-config", pool),
	}
}

// inputs returns all recorded captures, the hostile ones, simulated ones of SRDP, and broken ones.
func inputs(t *testing.T) []string {
	t.Helper()
	data, err := filepath.Abs(filepath.Join("..", "..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	more := t.TempDir()
	for seed := range 6 {
		simulated(t, filepath.Join(more, "srdp", fmt.Sprintf("%d.pcapng", seed)), "--protocol", "srdp", "--services", "any",
			"--clients", "3", "--loss", "5%", "--seed", strconv.Itoa(seed+1))
	}
	broken(t, filepath.Join(more, "broken"))
	recorded, err := filepath.Glob(filepath.Join(data, "pcaps", "*.pcap.gz"))
	if err != nil || len(recorded) < 100 {
		t.Fatal(len(recorded), err)
	}
	for i := 0; i < len(recorded); i += 8 { // truncated while they were packed
		b, err := os.ReadFile(recorded[i])
		if err != nil {
			t.Fatal(err)
		}
		folders.Put(t, filepath.Join(more, "truncated", filepath.Base(recorded[i])), b[:len(b)*3/5])
	}
	return []string{filepath.Join(data, "pcaps"), filepath.Join(data, "hostile"), more}
}

// summary sums up an output folder.
func summary(t *testing.T, folder string) *batch.Partition {
	t.Helper()
	s, err := batch.ReadSummary(folder)
	if err != nil {
		t.Fatal(err)
	}
	return s.Total(func(*batch.Partition) bool { return true })
}

// TestModes holds each way to run a job against `ackscope batch`.
func TestModes(t *testing.T) {
	needHeavy(t)
	in, folder := inputs(t), t.TempDir()
	want := filepath.Join(folder, "want")
	ackscope(t, 2, append([]string{"batch", "-q", "-o", want}, in...)...)
	all := summary(t, want)
	t.Logf("batch: %d captures %v, %d rows", all.Captures, all.States, all.Flows+all.Findings)
	ways := modes(t, prism(t))
	ways["in process"] = nil
	for name, args := range ways {
		t.Run(name, func(t *testing.T) {
			got, began := filepath.Join(folder, name), time.Now()
			finds(t, append(append([]string{"-o", got}, args...), in...)...)
			files := folders.Same(t, name, got, want)
			if found := summary(t, got); !t.Failed() {
				t.Logf("%s: %d rows, 0 differ; %d files, 0 differ; %.1f s", name, found.Flows+found.Findings, files,
					time.Since(began).Seconds())
			}
		})
	}
}

// TestKilledWorker kills a worker in a bundle. The job run again gives the same folder. In the same
// jobs, a capture that ends its process three times is quarantined.
func TestKilledWorker(t *testing.T) {
	needHeavy(t)
	manifest, folder := set(t), t.TempDir()
	want := filepath.Join(folder, "want")
	t.Setenv(poison, "good/1")
	ackscope(t, 2, "batch", "-q", "-o", want, "--manifest", manifest)
	mark := filepath.Join(folder, "killed")
	t.Setenv(murder, mark+"|good/2")
	ways := modes(t, prism(t)) // its processes have the variables
	for _, name := range []string{"PROCESS", "EXTERNAL"} {
		got := filepath.Join(folder, name)
		args := append([]string{"-o", got, "--manifest", manifest}, ways[name]...)
		out, err := job(t, args...)
		if err == nil || !strings.Contains(out, "failed") {
			t.Fatalf("%s: a job whose worker was killed: %v\n%s", name, err, out)
		}
		if _, err := os.Stat(mark); err != nil {
			t.Fatalf("%s: no worker was killed: %v\n%s", name, err, out)
		}
		if _, err := os.Stat(filepath.Join(got, "summary.json")); err == nil {
			t.Errorf("%s: there are tables", name)
		}
		if out := finds(t, args...); !strings.Contains(out, "1 quarantined") {
			t.Errorf("%s: it said %q", name, out)
		}
		if n := folders.Same(t, name, got, want); !t.Failed() {
			t.Logf("%s: the worker was killed, and the job run again: %d files, 0 differ", name, n)
		}
		if err := os.Remove(mark); err != nil {
			t.Fatal(err)
		}
	}
}

// distinct is how many captures are simulated for TestSpeed. The others are links to them.
const distinct = 300

// TestSpeed says how many captures a second `ackscope batch` and Beam analyse. They take turns.
func TestSpeed(t *testing.T) {
	needHeavy(t)
	most := 6000
	if n, err := strconv.Atoi(os.Getenv("ACKSCOPE_BEAM_CAPTURES")); err == nil {
		most = n
	}
	folder := t.TempDir()
	at := func(i int) string { return filepath.Join(folder, "in", fmt.Sprintf("%06d.pcapng", i)) }
	for i := range most {
		if i < distinct {
			protocol := []string{"gaffer:reliable", "riptide:2.2.1", "srdp"}[i%3]
			simulated(t, at(i), "--protocol", protocol, "--seed", strconv.Itoa(i+1), "--loss", []string{"0%", "2%"}[i%2])
		} else if err := os.Link(at(i%distinct), at(i)); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 {
		for _, program := range []string{"batch", "run"} {
			out := filepath.Join(folder, fmt.Sprint(program, round))
			c := exec.Command(os.Args[0], program, "-o", out, filepath.Join(folder, "in"))
			began := time.Now()
			if said, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			took := time.Since(began).Seconds()
			name := map[string]string{"batch": "ackscope batch", "run": "Beam in process"}[program]
			t.Logf("%s: %d captures in %.1f s: %.0f a second", name, most, took, float64(most)/took)
		}
		got, want := filepath.Join(folder, fmt.Sprint("run", round)), filepath.Join(folder, fmt.Sprint("batch", round))
		folders.Same(t, "many captures", got, want)
	}
}

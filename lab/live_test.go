package lab_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// run is one lab in one process, captured live by ackscope's own source on
// loopback. Its files are in a folder of the test, with a common name.
type run struct {
	program, dir, name string
	args               []string
	out, said          []byte // to standard output, and to standard error
	took               time.Duration
	err                error
}

func (r *run) capture() string { return filepath.Join(r.dir, r.name+".client.pcapng") }
func (r *run) truth() string   { return filepath.Join(r.dir, r.name+".truth.jsonl") }
func (r *run) journal() string { return filepath.Join(r.dir, r.name+".journal.jsonl") }

// do runs the lab to its end.
func (r *run) do() {
	args := append([]string{"lab"}, r.args...)
	args = append(args, "-Z", testenv.AsUser, "--recorder", "live", "-w", r.capture(), "--truth", r.truth(),
		"--journal", r.journal())
	var said bytes.Buffer
	cmd := exec.Command(r.program, args...)
	cmd.Stderr = &said
	begun := time.Now()
	r.out, r.err = cmd.Output()
	r.said, r.took = said.Bytes(), time.Since(begun)
}

// Each protocol runs over a bad network and is captured live. The capture must
// show all that either end logged, and ackscope must claim nothing else. The
// runs are concurrent, since they mostly wait.
func TestLive(t *testing.T) {
	testenv.Grid(t, "endpoints of every protocol on sockets, against the clock")
	testenv.Long(t, "ten labs of three seconds, and the oracles over them")
	testenv.Root(t)
	program := testenv.Ackscope(t)
	bad := []string{
		"--duration", "2s", "--linger", "600ms", "--seed", "7", "--delay", "30ms", "--jitter", "15ms",
		"--loss", "30%",
	}
	lab := func(name string, args ...string) *run {
		return &run{program: program, dir: testenv.UserDir(t), name: name, args: append(args, bad...)}
	}
	runs := []*run{
		lab("reliable-loss30", "gaffer"),
		lab("reliable-uneven", "gaffer", "--dup", "15%", "--burst", "2%,30%", "--payload", "20-3000", "--rate", "50/30"),
		lab("reliable-as-article", "gaffer", "--profile", "article", "--clients", "3"),
		lab("u221_loss30", "riptide", "--clients", "2", "--dup", "10%"),
		lab("u200_loss30", "riptide", "--profile", "2.0.0"),
	}
	// TCP tolerates less: a loss delays everything behind it.
	stream := lab("t221_loss5", "riptide", "--transport", "tcp", "--clients", "2")
	stream.args = append(stream.args, "--loss", "5%")
	runs = append(runs, stream)
	messages := []*run{
		lab("srdp-direct", "srdp"),
		lab("srdp-clients", "srdp", "--clients", "4", "--dup", "10%", "--rate", "10"),
		lab("srdp-udp", "srdp", "--proxy", "udp"),
		// One client: the wire does not show whether a proxy keeps one list of
		// ids for all clients. Facts that depend on it are graded likely.
		lab("srdp-tcp", "srdp", "--proxy", "tcp"),
	}

	var all sync.WaitGroup
	for _, r := range slices.Concat(runs, messages) {
		all.Go(r.do)
	}
	all.Wait()
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) { r.hold(t, r.check) })
	}
	for _, r := range messages {
		t.Run(r.name, func(t *testing.T) { r.hold(t, r.checkSRDP) })
	}
}

// hold compares a run with the logs of its ends. On a busy machine, a reader
// may miss its frames, which are then dropped and counted. An end may miss its
// socket while its clock runs on. So a run that fails is repeated once, alone.
func (r *run) hold(t *testing.T, check func(t *testing.T) []string) {
	faults := check(t)
	if len(faults) > 0 {
		t.Logf("once more, alone: %s", strings.Join(faults, "\n"))
		r.do()
		faults = check(t)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

// finished checks that the run ended, and that its journal repeats it.
func (r *run) finished(t *testing.T) (faults []string) {
	t.Helper()
	if r.err != nil {
		t.Fatalf("ackscope lab %q: %v\n%s%s", r.args, r.err, r.out, r.said)
	}
	if r.took > 30*time.Second {
		t.Errorf("it took %v: the run is to be bounded", r.took)
	}
	if !regexp.MustCompile(`[1-9][0-9,]* packets recorded, 0 dropped`).Match(r.said) {
		faults = append(faults, fmt.Sprintf("it says %q, expected what was recorded and nothing dropped", r.said))
	}
	out := testenv.Output(t, r.program, "lab", "--play", r.journal())
	if !bytes.Contains(out, []byte("every byte as recorded")) {
		t.Errorf("the journal played again: %s", out)
	}
	return faults
}

// check compares a run with the logs of its ends, with the oracle of the
// recorded captures.
func (r *run) check(t *testing.T) []string {
	faults := r.finished(t)
	python := testenv.Need(t, "python3")
	root := testenv.Module(t)
	checker := filepath.Join(root, "internal", "truth", "truthcheck.py")
	out, err := exec.Command(python, checker, "--ackscope", r.program, "--schema",
		filepath.Join(root, "docs", "lab-riptide.yaml"), "-v", r.capture()).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("1 hold, 0 differ")) {
		return append(faults, fmt.Sprintf("truthcheck: %v\n%s", err, out))
	}
	t.Logf("%s", out)
	return faults
}

// TestApart runs three processes, as on three machines. An interrupt ends each
// one normally, with complete files.
func TestApart(t *testing.T) {
	testenv.Long(t, "the program is built, and runs as three")
	program, dir := testenv.Ackscope(t), testenv.UserDir(t)
	server := begin(t, program, "server at ([0-9.:]+)", "gaffer", "--listen", "0", "--truth",
		filepath.Join(dir, "server.jsonl"))
	relay := begin(t, program, "relay at ([0-9.:]+)", "gaffer", "--relay", "0="+server.at, "--loss", "20%", "--recorder",
		"relay", "-w", filepath.Join(dir, "relay.pcapng"))
	out := testenv.Output(t, program, "lab", "gaffer", "--connect", relay.at, "-q", "--count", "60", "--linger", "200ms",
		"--truth", filepath.Join(dir, "client.jsonl"))
	if !regexp.MustCompile(`^client: sent 60, received [1-9][0-9]*, acked [1-9][0-9]*\n$`).Match(out) {
		t.Errorf("the client says %q", out)
	}
	relay.interrupt(t)
	server.interrupt(t)
	log, err := os.ReadFile(filepath.Join(dir, "server.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(log, []byte(`"event":"final"`)) || !bytes.HasSuffix(log, []byte("}\n")) {
		t.Errorf("the server's log ends with %q", log[max(0, len(log)-200):])
	}
	flows := string(testenv.Output(t, program, "flows", filepath.Join(dir, "relay.pcapng")))
	if strings.Count(flows, "gaffer/reliable") != 2 {
		t.Errorf("in the relay's own recording ackscope finds\n%s\nexpected both legs", flows)
	}
}

// process is a part of a lab that runs until it is interrupted.
type process struct {
	cmd  *exec.Cmd
	said *bytes.Buffer
	at   string
	over chan error
}

// begin starts a part and reads its address.
func begin(t *testing.T, program, where string, args ...string) *process {
	t.Helper()
	p := &process{
		cmd: exec.Command(program, append([]string{"lab"}, args...)...), said: &bytes.Buffer{},
		over: make(chan error, 1),
	}
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		buffer := make([]byte, 4096)
		told := false
		for {
			n, err := pipe.Read(buffer)
			p.said.Write(buffer[:n])
			if m := regexp.MustCompile(where).FindSubmatch(p.said.Bytes()); m != nil && !told {
				told = true
				found <- string(m[1])
			}
			if err != nil {
				break
			}
		}
		p.over <- p.cmd.Wait()
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	select {
	case p.at = <-found:
	case err := <-p.over:
		t.Fatalf("%q: %v\n%s", args, err, p.said)
	case <-time.After(20 * time.Second):
		t.Fatalf("%q does not say where it is", args)
	}
	return p
}

func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.over:
		if err != nil {
			t.Errorf("interrupted: %v\n%s", err, p.said)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("it goes on after an interrupt\n%s", p.said)
	}
}

package batches

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

// distinct is how many captures are simulated for TestScale. The others are links to them: the
// analysis is the same for each name, and simulating takes longer than analysing.
const distinct = 2000

// TestScale runs `batch` over very many captures on two cores, and says how many a second it
// analyses, and what memory the run takes. ACKSCOPE_BATCH has their number (make batch). docs/scale.md
// has the figures.
func TestScale(t *testing.T) {
	most, _ := strconv.Atoi(os.Getenv("ACKSCOPE_BATCH"))
	if most < distinct {
		t.Skip("make batch runs it: it takes minutes")
	}
	folder := t.TempDir()
	for i := range most {
		path := filepath.Join(folder, "in", fmt.Sprintf("%03d", i/1000), fmt.Sprintf("%06d.pcapng", i))
		if i < distinct {
			protocol := []string{"gaffer:reliable", "riptide:2.2.1", "srdp"}[i%3]
			loss := []string{"0%", "2%", "10%"}[i%5%3]
			simulated(t, path, "--protocol", protocol, "--seed", strconv.Itoa(i+1), "--loss", loss)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(folder, "in", fmt.Sprintf("%03d", i%distinct/1000), fmt.Sprintf("%06d.pcapng",
			i%distinct)), path); err != nil {
			t.Fatal(err)
		}
	}
	program := testenv.Ackscope(t)
	for _, n := range []int{most / 4, most} {
		args := []string{"batch", "--threads", "2", "-o", filepath.Join(folder, fmt.Sprint("out", n))}
		for i := range n / 1000 {
			args = append(args, filepath.Join(folder, "in", fmt.Sprintf("%03d", i)))
		}
		began := time.Now()
		var said bytes.Buffer
		command := exec.Command(program, args...)
		command.Stdout, command.Stderr = &said, &said
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		ended, peaks := make(chan error, 1), [2]int{}
		go func() { ended <- command.Wait() }()
		var err error
		for running := true; running; {
			select {
			case err = <-ended:
				running = false
			case <-time.After(200 * time.Millisecond):
				watch(command.Process.Pid, &peaks)
			}
		}
		if err != nil {
			t.Fatalf("%v: %s", err, said.String())
		}
		took, state := time.Since(began), command.ProcessState
		t.Logf("%d captures: %.0f s, %.0f captures a second; CPU of all processes %.0f s; memory at most %d MB of the run "+
			"and %d MB of a worker\n%s", n, took.Seconds(), float64(n)/took.Seconds(),
			(state.UserTime() + state.SystemTime()).Seconds(), peaks[0]>>10, peaks[1]>>10, said.String())
	}
}

// watch raises the peaks of a process and of its children, in KiB. That of the kernel's accounts
// would do for neither: a process inherits it from the one that started it.
func watch(pid int, peaks *[2]int) {
	peaks[0] = max(peaks[0], resident(strconv.Itoa(pid)))
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range lists {
		children, _ := os.ReadFile(path) // the thread may have ended
		for _, child := range strings.Fields(string(children)) {
			peaks[1] = max(peaks[1], resident(child))
		}
	}
}

// resident returns the peak of a process, or 0 once it has ended.
func resident(pid string) int {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "status"))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			return n
		}
	}
	return 0
}

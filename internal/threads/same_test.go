package threads

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// counts are the numbers of threads. With 8 there are more shards than cores on most machines.
var counts = []int{1, 2, 8}

var commands = []string{"flows", "findings", "events", "packets", "ledger", "replay", "messages", "overview"}

// TestSameOutput: standard output, standard error and the exit status are the same for any number of threads.
func TestSameOutput(t *testing.T) {
	program := testenv.Ackscope(t)
	list := append(made(t), recorded(t)...)
	var said atomic.Int64
	t.Cleanup(func() {
		if t.Logf("%d captures, %d bytes by one thread", len(list), said.Load()); said.Load() < 1<<20 && !t.Failed() {
			t.Errorf("the program wrote %d bytes, expected a megabyte at least", said.Load())
		}
	})
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, command := range commands {
				args := append([]string{command, "--json"}, c.paths...)
				want := written(program, counts[0], args)
				said.Add(int64(len(want)))
				for _, n := range counts[1:] {
					if got := written(program, n, args); !bytes.Equal(got, want) {
						t.Errorf("%s: %d threads write something else than one: %s", command, n, firstDifference(want, got))
					}
				}
			}
		})
	}
}

// written returns all that the program writes with so many threads.
func written(program string, threads int, args []string) []byte {
	var b, complaint bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), fmt.Sprint("GOMAXPROCS=", threads))
	cmd.Stdout, cmd.Stderr = &b, &complaint
	err := cmd.Run()
	fmt.Fprintf(&b, "-- stderr\n%s-- %v\n", complaint.Bytes(), err)
	return b.Bytes()
}

func firstDifference(want, got []byte) string {
	w, g := bytes.Split(want, []byte("\n")), bytes.Split(got, []byte("\n"))
	for i := range min(len(w), len(g)) {
		if !bytes.Equal(w[i], g[i]) {
			return fmt.Sprintf("line %d:\n%.300s\nexpected\n%.300s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, expected %d", len(g), len(w))
}

// each is which of the recorded captures the plain run takes: every so manyth.
const each = 24

// recorded returns the captures of testdata.
func recorded(t *testing.T) (list []subject) {
	t.Helper()
	root := filepath.Join(testenv.Module(t), "testdata")
	for _, dir := range []string{"connect", "kernel", "layers", "pcaps"} {
		paths, err := filepath.Glob(filepath.Join(root, dir, "*.pcap*"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d captures, %v", dir, len(paths), err)
		}
		for i, path := range paths {
			if dir != "pcaps" || testenv.Whole() || i%each == 0 {
				list = append(list, subject{filepath.Base(path), []string{path}})
			}
		}
	}
	return list
}

package truth

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// TestTruthcheck runs the Python oracle over every capture with a tap in its
// name. It passes no flags to ackscope, which must find flows, dialects and
// taps by itself.
func TestTruthcheck(t *testing.T) {
	testenv.Grid(t, "a process for each of some 60 captures, twice")
	python := testenv.Need(t, "python3")
	program := testenv.Ackscope(t)
	var paths []string
	for _, c := range captures(t) {
		paths = append(paths, c.path)
	}
	for _, mode := range [][]string{nil, {"--estimates"}} {
		args := append([]string{"truthcheck.py", "--ackscope", program}, mode...)
		out, err := exec.Command(python, append(args, paths...)...).CombinedOutput()
		if err != nil {
			t.Errorf("truthcheck.py %s: %v\n%s", strings.Join(mode, " "), err, out)
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		// "N hold, 0 differ": a check of no facts would be worthless.
		if last := lines[len(lines)-1]; !strings.HasSuffix(last, "hold, 0 differ") || strings.HasPrefix(last, "0 ") {
			t.Errorf("truthcheck.py %s closed with %q", strings.Join(mode, " "), last)
		} else {
			t.Log(last)
		}
	}
}

package truth

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// TestTruthcheckRiptide runs the Python oracle over every capture of the C#
// library. It compares copies, values, deliveries and acked messages with the
// endpoints' logs. The only flag is the schema.
func TestTruthcheckRiptide(t *testing.T) {
	testenv.Grid(t, "a process for each of some 90 captures")
	python := testenv.Need(t, "python3")
	program := testenv.Ackscope(t)
	schema := testenv.Capture(t, "riptide-messages.yaml")
	var paths []string
	for _, pattern := range []string{
		"u2*.client.pcap*", "u2*.server.pcap*", "t2*.client.pcap*", "t2*.server.pcap*",
		"upy200_cs200_server.server.pcap*",
	} {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(schema), pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	out, err := exec.Command(python,
		append([]string{"truthcheck.py", "--ackscope", program, "--schema", schema}, paths...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("truthcheck.py: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, "hold, 0 differ") || strings.HasPrefix(last, "0 ") {
		t.Errorf("truthcheck.py closed with %q", last)
	} else {
		t.Log(last)
	}
}

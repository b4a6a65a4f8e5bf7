package live

import (
	"os"
	"os/exec"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// TestLibpcap: what other systems are built with builds here too, and captures on
// loopback.
func TestLibpcap(t *testing.T) {
	testenv.Long(t, "it compiles with cgo")
	testenv.Need(t, "gcc")
	for _, args := range [][]string{
		{"vet", "-tags", "libpcap", "./cmd/ackscope", "./capture/libpcap"},
		{"test", "-count", "1", "-tags", "libpcap", "./capture/libpcap"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = testenv.Module(t), append(os.Environ(), "CGO_ENABLED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %q: %v\n%s", args, err, out)
		}
	}
}

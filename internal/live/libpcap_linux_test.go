package live

import (
	"os"
	"os/exec"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// TestLibpcap: what captures on other systems builds here too, and captures on
// loopback. Since it compiles with cgo, it runs where no check may be left out.
func TestLibpcap(t *testing.T) {
	if !testenv.Required() {
		t.Skip("compiles with cgo: " + testenv.Require + "=1 runs it")
	}
	testenv.Need(t, "gcc")
	cmd := exec.Command("go", "test", "-count", "1", "-tags", "libpcap", "./capture/libpcap")
	cmd.Dir, cmd.Env = testenv.Module(t), append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

package live

import (
	"os"
	"os/exec"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// TestLibpcap builds the libpcap capture of other systems on Linux, and
// captures on loopback. It compiles with cgo, so it runs only where no check
// may be skipped.
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

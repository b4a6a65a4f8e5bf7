package live

import (
	"os"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const built = "ACKSCOPE_TEST_PROGRAM" // built by the first run

func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(built); path != "" {
		return path
	}
	return testenv.Ackscope(t)
}

// namespaced runs the test a second time, as root in namespaces of its own,
// with the program that the first run has built. It returns true in the second
// run.
func namespaced(t *testing.T) bool {
	t.Helper()
	return testnet.NamespacedRoot(t, built+"="+program(t))
}

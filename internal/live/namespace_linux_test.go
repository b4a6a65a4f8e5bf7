package live

import (
	"os"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const built = "ACKSCOPE_TEST_PROGRAM" // that the first run has built

func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(built); path != "" {
		return path
	}
	return testenv.Ackscope(t)
}

// namespaced runs the test again, as root, in namespaces of its own with the
// program that this run has built; true in that second run.
func namespaced(t *testing.T) bool {
	t.Helper()
	return testnet.NamespacedRoot(t, built+"="+program(t))
}

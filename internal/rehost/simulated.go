package rehost

import (
	"errors"
	"os"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// simulatedPort is the port of the server that `ackscope simulate` runs.
const simulatedPort = 40000

// Simulated writes a capture of what `ackscope simulate` sends with these arguments, and returns the number of
// its packets. The network loses 5 %. Each client is on a host of its own.
func Simulated(tb testing.TB, to string, args ...string) (packets int) {
	tb.Helper()
	one := to + ".one-host.pcapng"
	args = append(append([]string{"simulate"}, args...), "-q", "--loss", "5%", "--jitter", "5ms", "-w", one)
	testenv.Output(tb, testenv.Ackscope(tb), args...)
	f, err := os.Create(to)
	if err != nil {
		tb.Fatal(err)
	}
	packets, err = Copy(f, one, Spread(simulatedPort))
	if err := errors.Join(err, f.Close(), os.Remove(one)); err != nil {
		tb.Fatal(err)
	}
	return packets
}

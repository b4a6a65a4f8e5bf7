package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/rehost"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/traffic"
)

const million = 1_000_000

// input is a capture to measure with.
type input struct {
	name, path     string
	packets, flows int
}

// synthetic writes a capture of Gaffer. With -short it has a hundredth of the packets.
func synthetic(tb testing.TB, packets, flows int, loss float64) input {
	tb.Helper()
	if testing.Short() {
		packets, flows = packets/100, max(flows/100, min(flows, 64))
	}
	in := input{name: "gaffer", packets: packets, flows: flows}
	in.path = file(tb, "gaffer.pcap", func(f *os.File) error {
		return traffic.Write(f, traffic.Options{Packets: packets, Flows: flows, Loss: loss, Seed: 1})
	})
	return in
}

// simulated writes what `ackscope simulate` sends, with each client on a host of its own. The network loses 5 %.
// With -short it lasts a hundredth of the time.
func simulated(tb testing.TB, protocol string, clients int, length time.Duration, flags string) (in input) {
	tb.Helper()
	if testing.Short() {
		length /= 100
	}
	in = input{name: protocol, flows: clients, path: filepath.Join(tb.TempDir(), protocol+".pcapng")}
	args := append([]string{protocol, "--duration", length.String()}, strings.Fields(flags)...)
	in.packets = rehost.Simulated(tb, in.path, args...)
	return in
}

// inputs are the captures of the table: about a million packets of each protocol.
func inputs(tb testing.TB) []input {
	tb.Helper()
	return []input{
		synthetic(tb, million, 64, 0.05),
		simulated(tb, "riptide", 4, 3950*time.Second, "--clients 4 --no-limits"),
		simulated(tb, "srdp", 16, 250*time.Second, "--clients 16"),
	}
}

// file writes a file into a folder of its own.
func file(tb testing.TB, name string, write func(*os.File) error) (path string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := write(f); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// check holds what the program finds in a capture against what is in it. A program that finds nothing is fast.
func check(tb testing.TB, in input) {
	tb.Helper()
	found := bytes.Count(testenv.Output(tb, testenv.Ackscope(tb), "flows", "--json", in.path), []byte(`"protocol":"`+in.name+`"`))
	// A few of very many flows are so short that no packet was acked yet.
	if found > in.flows || found < in.flows-in.flows/100 {
		tb.Fatalf("ackscope flows finds %d flows of %s in the capture, expected %d", found, in.name, in.flows)
	}
}

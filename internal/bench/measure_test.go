package bench

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/traffic"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// usage is the resources that a process used.
type usage struct {
	cpu  time.Duration // user and system
	peak int64         // resident memory, bytes
}

// measure runs a command to its end. A command that fails, fails the benchmark.
func measure(b *testing.B, name string, args ...string) usage {
	b.Helper()
	var complaint bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &complaint // standard output goes to the null device
	if err := cmd.Run(); err != nil {
		b.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, complaint.Bytes())
	}
	state := cmd.ProcessState
	return usage{cpu: state.UserTime() + state.SystemTime(), peak: testenv.Peak(state)}
}

// counter builds the C loop.
func counter(b *testing.B) string {
	b.Helper()
	gcc := testenv.Need(b, "gcc")
	path := filepath.Join(b.TempDir(), "count")
	if out, err := exec.Command(gcc, "-O2", "-o", path, "testdata/count.c", "-lpcap").CombinedOutput(); err != nil {
		testenv.Skip(b, "gcc cannot build testdata/count.c, perhaps for want of libpcap's headers: "+string(out))
	}
	return path
}

// capture writes a capture of synthetic traffic. With -short it has a hundredth
// of the packets.
func capture(b *testing.B, packets, flows int) (path string, packetsMade, flowsMade int) {
	b.Helper()
	if testing.Short() {
		packets, flows = packets/100, max(flows/100, min(flows, 64))
	}
	path = filepath.Join(b.TempDir(), "traffic.pcap")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := traffic.Write(f, traffic.Options{Packets: packets, Flows: flows, Loss: 0.05, Seed: 1}); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return path, packets, flows
}

// program builds ackscope and checks that it finds the contents of the capture.
// A program that finds nothing is fast.
func program(b *testing.B, path string, flows int) string {
	b.Helper()
	ackscope := testenv.Ackscope(b)
	found := bytes.Count(testenv.Output(b, ackscope, "flows", "--json", path), []byte(`"protocol":"gaffer"`))
	// A few of very many flows are so short that no packet was acked yet.
	if found > flows || found < flows-flows/100 {
		b.Fatalf("ackscope flows finds %d Gaffer flows in the capture, expected %d", found, flows)
	}
	return ackscope
}

// ratio is the processor time of another program and of ours, over all turns of
// a benchmark.
type ratio struct{ ours, theirs time.Duration }

func (r *ratio) add(ours, theirs usage) { r.ours += ours.cpu; r.theirs += theirs.cpu }

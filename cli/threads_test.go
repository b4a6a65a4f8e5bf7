package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
)

// TestThreads: one thread and four write the same, also under the race detector. The captures have several pairs of
// hosts, relayed messages, ICMP errors and TCP. One has an endpoint with one counter for all peers. internal/threads
// compares far more captures, in processes of their own.
func TestThreads(t *testing.T) {
	t.Cleanup(func(n int) func() { return func() { runtime.GOMAXPROCS(n) } }(runtime.GOMAXPROCS(0)))
	data := func(name ...string) string { return filepath.Join(append([]string{"..", "testdata"}, name...)...) }
	srdp := filepath.Join(t.TempDir(), "srdp.pcapng")
	output(t, "simulate", "srdp", "-q", "--clients", "4", "--loss", "5%", "--duration", "5s", "-w", srdp)
	several := []string{
		data("pcaps", "u221_lobby.server.pcap.gz"), data("pcaps", "reliable-loss10.client.pcap.gz"),
		data("pcaps", "t210_clean.client.pcap.gz"), data("kernel", "mtu.pcapng.gz"),
	}
	for _, paths := range [][]string{several[:3], several, {srdp}} {
		for _, command := range []string{"flows", "findings", "events", "packets", "ledger", "replay"} {
			args := append([]string{command, "-q", "--json"}, paths...)
			want := writtenBy(1, args)
			if got := writtenBy(4, args); got != want || len(got) < 100 {
				diffLines(t, command+" of "+filepath.Base(paths[len(paths)-1]), want, got)
			}
		}
	}
}

// writtenBy returns what the program writes with so many threads, and its exit status.
func writtenBy(threads int, args []string) string {
	runtime.GOMAXPROCS(threads)
	var out, complaint bytes.Buffer
	code := runKnown(args, app.Streams{In: strings.NewReader(""), Out: &out, Err: &complaint})
	return out.String() + complaint.String() + fmt.Sprint(code)
}

package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
)

// packetsOf returns the frames of a capture as Ethernet frames.
func packetsOf(t *testing.T, name string) (frames [][]byte) {
	t.Helper()
	in, err := capture.Open([]string{testenv.Capture(t, name)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	for f := (capture.Frame{}); ; {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return frames
		} else if err != nil {
			t.Fatal(err)
		}
		b := bytes.Clone(f.Data)
		if f.LinkType != capture.LinkEthernet {
			at := 16 // length of a cooked header
			if f.LinkType == capture.LinkSLL2 {
				at = 20
			}
			b = append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0}, b[at:]...)
		}
		frames = append(frames, b)
	}
}

// play slowly sends the frames of captures, in turn.
func play(t *testing.T, out *testnet.Injector, captures ...[][]byte) (sent int) {
	t.Helper()
	for i := 0; ; i++ {
		over := true
		for _, frames := range captures {
			if i < len(frames) {
				over = false
				out.Send(t, frames[i])
				sent++
			}
		}
		if over {
			return sent
		}
		if i%8 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// TestLiveIsOffline: flows prints the same about a live capture as about the
// file that it wrote meanwhile, to the byte.
func TestLiveIsOffline(t *testing.T) {
	if !namespaced(t) {
		return
	}
	file := filepath.Join(testenv.UserDir(t), "live.pcapng")
	c := begin(t, nil, "flows", "-Z", testenv.AsUser, "-i", "veth0", "-w", file, "--json")
	sent := play(t, testnet.Inject(t, "veth1"), packetsOf(t, "reliable-loss10.client.pcap.gz"),
		packetsOf(t, "u210_loss10.client.pcapng.gz"), packetsOf(t, "tpy_clean.client.pcap.gz"))
	time.Sleep(200 * time.Millisecond)
	if err := c.end(t, os.Interrupt); err != nil {
		t.Fatalf("%v\n%s", err, c.errors.Bytes())
	}
	live := c.out.String()
	offline := string(testenv.Output(t, program(t), "flows", "--json", file))
	for _, name := range []string{`"protocol":"gaffer"`, `"protocol":"riptide"`, `"transport":"tcp"`} {
		if !strings.Contains(live, name) {
			t.Errorf("of %d packets live says\n%s\nexpected a flow with %s", sent, live, name)
		}
	}
	if live != offline {
		t.Errorf("live:\n%s\nof the file:\n%s", live, offline)
	}
}

// TestPipes: tcpdump captures, and each listing reads its pipe. Some print as
// packets arrive, and all read to the end. They print the same as for the file.
func TestPipes(t *testing.T) {
	tcpdump, tee, mkfifo, shell := testenv.Need(t, "tcpdump"), testenv.Need(t, "tee"), testenv.Need(t, "mkfifo"),
		testenv.Need(t, "sh")
	if !namespaced(t) {
		return
	}
	game := packetsOf(t, "reliable-loss10.client.pcap.gz")[:1200]
	dir := t.TempDir()
	file := filepath.Join(dir, "all.pcap")
	listings := []string{
		"flows --json", "flows --json --live", "packets --json", "packets --json --live", "events --json",
		"events --json --live",
		"findings --json", "findings --json --live", "messages --json",
	}
	copies := []string{file}
	var readers []*exec.Cmd
	printed := func(i int) string { return filepath.Join(dir, fmt.Sprint("out", i)) }
	for i, listing := range listings {
		pipe := filepath.Join(dir, fmt.Sprint("pipe", i))
		testenv.Output(t, mkfifo, pipe)
		copies = append(copies, pipe)
		cmd := exec.Command(shell, "-c", "exec "+program(t)+" "+listing+" -r - < "+pipe+" > "+printed(i))
		cmd.Stderr = os.Stderr
		start(t, cmd)
		readers = append(readers, cmd)
	}
	source, split := exec.Command(tcpdump, "-i", "veth0", "-U", "-w", "-", "udp"), exec.Command(tee, copies...)
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	said := filepath.Join(dir, "said")
	complaint, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	source.Stdout, source.Stderr, split.Stdin = to, complaint, from
	start(t, split)
	start(t, source)
	for _, f := range []*os.File{from, to, complaint} { // the children have them
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(path string, what []byte) func() bool {
		return func() bool {
			b, err := os.ReadFile(path)
			return err == nil && bytes.Contains(b, what)
		}
	}
	waitFor(t, "tcpdump that listens", holds(said, []byte("listening on")))
	play(t, testnet.Inject(t, "veth1"), game)
	waitFor(t, "last packet in the file", holds(file, game[len(game)-1][14:]))
	for i, listing := range listings { // nothing has ended yet
		if listing == "packets --json --live" || listing == "events --json --live" {
			waitFor(t, "output of "+listing+" on the way", func() bool {
				info, err := os.Stat(printed(i))
				return err == nil && info.Size() > 100_000
			})
		}
	}
	if err := source.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(source.Wait(), split.Wait()); err != nil {
		t.Fatal(err)
	}
	for i, listing := range listings {
		if err := readers[i].Wait(); err != nil {
			t.Errorf("%s: %v", listing, err)
		}
		got, err := os.ReadFile(printed(i))
		if err != nil {
			t.Fatal(err)
		}
		want := testenv.Output(t, program(t), append(strings.Fields(listing), file)...)
		if !bytes.Equal(got, want) || len(want) == 0 &&
			(strings.HasPrefix(listing, "flows") || strings.HasPrefix(listing, "packets") ||
				strings.HasPrefix(listing, "events")) {
			t.Errorf("%s prints %d bytes of the pipe, %d of the file; expected the same", listing, len(got), len(want))
		}
	}
}

func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
}

package live

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
)

// TestRecorderLive captures a game with bursts of loss beside quiet traffic. The recordings appear while the interface
// is idle, since no packet moves the time then. They belong to the unprivileged user and lack the quiet flow.
func TestRecorderLive(t *testing.T) {
	if !namespaced(t) {
		return
	}
	folder := testenv.UserDir(t)
	c := begin(t, nil, "capture", "-Z", testenv.AsUser, "-i", "veth0", "--on", "note", "--on", userSignal, "--keep", "30s",
		"--after", "1s", "-w", folder)
	play(t, testnet.Inject(t, "veth1"), packetsOf(t, "reliable-burst.client.pcap.gz"), game(t, 500, 100))
	recordings := func() (list []string) {
		list, err := filepath.Glob(filepath.Join(folder, "*.pcapng"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	waitFor(t, "a recording on the idle interface", func() bool { return len(recordings()) > 0 })
	if err := c.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the recording of "+userSignal, func() bool {
		return strings.Contains(strings.Join(recordings(), " "), strings.ToLower(userSignal))
	})
	if err := c.end(t, os.Interrupt); err != nil {
		t.Fatalf("%v\n%s", err, c.errors.Bytes())
	}
	for _, path := range recordings() {
		text, err := os.ReadFile(strings.TrimSuffix(path, ".pcapng") + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var x struct {
			On       string
			Again    *bool
			Frames   int
			Dropped  *uint64
			All      bool
			Recorded []struct{ A, B string }
		}
		if err := json.Unmarshal(text, &x); err != nil {
			t.Fatal(err)
		}
		if x.Dropped == nil || *x.Dropped > 0 || (x.On != userSignal) != (x.Again != nil && *x.Again) ||
			x.All != (x.On == userSignal) {
			t.Errorf("%s", text)
		}
		for _, f := range x.Recorded {
			if !x.All && strings.HasSuffix(f.B, ":7777") {
				t.Errorf("%s has the quiet flow %+v", path, f)
			}
		}
		if n := framesOf(t, path); n != x.Frames {
			t.Errorf("%s: %d frames, expected %d", path, n, x.Frames)
		}
		var st syscall.Stat_t
		if err := syscall.Stat(path, &st); err != nil || st.Uid == 0 || st.Mode&0o777 != 0o600 {
			t.Errorf("%s: owner %d, mode %o, %v", path, st.Uid, st.Mode, err)
		}
	}
}

const userSignal = "SIGUSR1"

// framesOf counts the frames of a capture, which must be whole.
func framesOf(t *testing.T, path string) (n int) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	var f capture.Frame
	for {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
		n++
	}
}

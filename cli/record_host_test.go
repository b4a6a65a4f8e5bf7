package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// TestRecorderHost: a recording holds the samples of the host, so that its findings say the same as those of the
// capture.
func TestRecorderHost(t *testing.T) {
	path := filepath.Join(testenv.Module(t), "testdata", "kernel", "host-socket.pcapng.gz")
	folder := t.TempDir()
	output(t, "capture", "-q", "-r", path, "--on", "socket-dropped", "-w", folder)
	files, err := filepath.Glob(filepath.Join(folder, "*.pcapng"))
	if err != nil || len(files) != 1 {
		t.Fatalf("recordings %q, %v", files, err)
	}
	const key = `"host":"socket"`
	for _, args := range [][]string{{"findings", "--json"}, {"--json"}} {
		want, got := output(t, append(args, path)...), output(t, append(args, files[0])...)
		if n := strings.Count(want, key); n != strings.Count(got, key) || args[0] == "findings" && n == 0 {
			t.Errorf("%q says %s %d times of the recording, and %d times of the capture", args, key,
				strings.Count(got, key), n)
		}
	}
	flow := output(t, "flows", "--json", files[0])
	for _, part := range []string{`"owner_name_a":"game"`, `"socket_drops_a":267`, `"owner_unknown_b":"its address is not`} {
		if !strings.Contains(flow, part) {
			t.Errorf("no %s in %s", part, flow)
		}
	}
}

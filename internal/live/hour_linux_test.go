package live

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/traffic"
)

// TestHour pipes an hour of simulated traffic through an analysis with a limit
// of 64 MiB. Its memory does not grow meanwhile. It needs ACKSCOPE_SOAK.
func TestHour(t *testing.T) {
	if os.Getenv("ACKSCOPE_SOAK") == "" {
		t.Skip("a soak test: ACKSCOPE_SOAK=1 runs it")
	}
	const (
		flows   = 8
		packets = 3600 * flows * 90 // as many a second: 30 to 60 in each direction
		most    = 64 << 20
	)
	cmd := exec.Command(program(t), "flows", "--live", "--memory", "64MiB", "--metrics", "127.0.0.1:0", "--alert", "error",
		"--json", "-r", "-")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	written := make(chan error, 1)
	go func() { written <- writeAll(pipe, traffic.Options{Packets: packets, Flows: flows, Loss: .02, Seed: 5}) }()
	var profile []int64
	for over := false; !over; {
		select {
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
			over = true
		case <-time.After(100 * time.Millisecond):
			if n := resident(t, cmd.Process.Pid); n > 0 {
				profile = append(profile, n)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	n := len(profile)
	if n < 20 {
		t.Fatalf("%d samples of its memory, expected more", n)
	}
	highest := func(list []int64) (v int64) {
		for _, x := range list {
			v = max(v, x)
		}
		return v
	}
	early, late := highest(profile[n/10:n/4]), highest(profile[n*3/4:])
	t.Logf("%d packets, resident: %d MiB early, %d MiB in the last quarter", packets, early>>20, late>>20)
	if late > early+early/4 || highest(profile) > most {
		t.Errorf("resident %d MiB early, %d late, at most %d: expected a flat profile below %d", early>>20, late>>20,
			highest(profile)>>20, most>>20)
	}
	total, began, last := uint64(0), "", ""
	for line := range strings.Lines(out.String()) {
		var o struct {
			PacketsA uint64 `json:"packets_a"`
			PacketsB uint64 `json:"packets_b"`
			Rule     string
			Time     string
			LastTime string `json:"last_time"`
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if o.Rule == "" {
			total += o.PacketsA + o.PacketsB
			if began == "" || o.Time < began {
				began = o.Time
			}
			last = max(last, o.LastTime)
		}
	}
	if total != packets {
		t.Errorf("the flows have %d packets, %d were sent", total, packets)
	}
	from, err := time.Parse(time.RFC3339Nano, began)
	if err != nil {
		t.Fatal(err)
	}
	to, err := time.Parse(time.RFC3339Nano, last)
	if err != nil || to.Sub(from) < 55*time.Minute {
		t.Errorf("%v of traffic (%v), expected an hour", to.Sub(from), err)
	}
}

func writeAll(w io.WriteCloser, o traffic.Options) error {
	if err := traffic.Write(w, o); err != nil {
		return err
	}
	return w.Close()
}

// resident returns the resident memory of a process in bytes, or 0 if it has
// ended.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

package merge_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/rewrite/merge"
)

// TestWrite: both captures become one, in the order of one clock. Each packet
// has a comment with its outcome, and tshark reads the comments.
func TestWrite(t *testing.T) {
	client, server := open(t, filepath.Join(pcaps, "reliable-dup10.client.pcap.gz")),
		open(t, filepath.Join(pcaps, "reliable-dup10.server.pcap.gz"))
	fast := &set{Input: server, by: 5e9, ppm: 500}
	m := put(t, client, fast)
	path := filepath.Join(t.TempDir(), "both.pcapng")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := capture.NewWriter(f, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.AddInterface(capture.Interface{LinkType: 1}); err != nil {
			t.Fatal(err)
		}
	}
	frames := [2]int{}
	comments := map[string]int{}
	var last machine.Instant
	if err := m.Write([2]merge.Source{client, fast}, func(f *capture.Frame, notes ...string) error {
		if f.At < last {
			t.Errorf("frame %d of tap %d is at %d, after one at %d", f.Ref.Frame(), f.Ref.File(), f.At, last)
		}
		last = f.At
		frames[f.Ref.File()]++
		for _, n := range notes {
			switch {
			case strings.Contains(n, "lost between"):
				comments["lost"]++
			case strings.Contains(n, "a copy made"):
				comments["copy"]++
			}
		}
		copied := *f
		copied.Interface = f.Ref.File()
		return w.WriteFrame(&copied, notes...)
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if frames != [2]int{int(m.Taps[0].Session.Packets()), int(m.Taps[1].Session.Packets())} {
		t.Errorf("%v frames written, of %d and %d", frames, m.Taps[0].Session.Packets(), m.Taps[1].Session.Packets())
	}
	if comments["lost"] != 12+25 || comments["copy"] != 99+87 { // according to the relay's log
		t.Errorf("comments %v, expected 37 lost and 186 copies", comments)
	}
	testenv.Need(t, "tshark")
	out, err := exec.Command("tshark", "-r", path, "-Y", `frame.comment contains "lost between the taps"`, "-T", "fields",
		"-e", "frame.number").Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(out), "\n"); n != 37 {
		t.Errorf("tshark finds %d packets with the comment, expected 37", n)
	}
}

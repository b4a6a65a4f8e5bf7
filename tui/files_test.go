package tui

import (
	"testing"

	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/store"
)

// :n, :N and :file leave for another capture. If there is none, the UI stays
// and says so.
func TestGoFile(t *testing.T) {
	files := []string{"a/x.pcap", "b/x.pcap", "c/y.pcap"}
	for _, c := range []struct {
		from    int
		command string
		to      int // equal to from: stays
	}{
		{0, "n", 1},
		{0, "next", 1},
		{2, "n", 2},
		{1, "N", 0},
		{0, "previous", 0},
		{0, "file 3", 2},
		{0, "file y.pcap", 2},
		{0, "file b/x.pcap", 1},
		{2, "file x.pcap", 2},
		{0, "file 4", 0},
		{0, "file", 0},
		{1, "file 2", 1},
	} {
		m := &Model{Browser: &browser.Browser{}, o: Options{Files: files, File: c.from}, next: c.from}
		m.command(c.command)
		if m.next != c.to || m.quit != (c.to != c.from) || !m.quit && m.Note == "" {
			t.Errorf(":%s at file %d: to %d, leaves %v, says %q", c.command, c.from, m.next, m.quit, m.Note)
		}
	}
	m := &Model{Browser: &browser.Browser{}, o: Options{Files: files[:1]}}
	if m.command("n"); m.quit || m.Note == "" {
		t.Error("one capture alone is left for another")
	}
	m = &Model{Browser: &browser.Browser{}, o: Options{Files: files, File: 1}, saving: &saving{"out", &store.Saving{}}}
	if m.command("n"); m.quit || m.next != 2 {
		t.Error("left while packets are being saved")
	}
	m.saving.Done = true
	if m.command("q"); !m.quit || m.next != 1 {
		t.Error(":q after it opens the other capture")
	}
}

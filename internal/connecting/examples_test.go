package connecting

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
)

// keep names a directory in which TestExamples writes the captures of testdata/connect anew.
const keep = "ACKSCOPE_KEEP_CAPTURES"

// TestExamples writes the captures that the pages of docs show.
func TestExamples(t *testing.T) {
	dir := os.Getenv(keep)
	if dir == "" {
		dir = t.TempDir()
	}
	const ignored = "yojimbo-wrong-key.client.pcap.gz"
	write(t, filepath.Join(dir, "token-expired.pcapng.gz"), edit(t, ignored, both(
		shifted(expiry(t, ignored, 42*time.Second)),
		func(_ *capture.Frame, p *capture.Packet) bool { return p.Src.Port() == 30000 }, // the client that was ignored
	)))
	write(t, filepath.Join(dir, "nat-idle.pcapng.gz"), edit(t, reliableGame, silent(t, 45*time.Second, ofClient, 55555)))
	write(t, filepath.Join(dir, "reconnect-loop.pcapng.gz"),
		again(t, "yojimbo-denied-full.client.pcap.gz", 30001, 5, 10*time.Second))
}

// both applies two edits.
func both(one, two change) change {
	return func(f *capture.Frame, p *capture.Packet) bool { return one(f, p) && two(f, p) }
}

// write writes what is read of a changed capture.
func write(t *testing.T, path string, e capture.Source) {
	t.Helper()
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(out)
	w, err := capture.NewWriter(packed, capture.WriterOptions{Application: "ackscope"})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddInterface(capture.Interface{LinkType: capture.LinkEthernet})
	if err != nil {
		t.Fatal(err)
	}
	frames := 0
	for f := (capture.Frame{}); e.Next(&f) == nil; frames++ {
		f.Interface = id
		if err := w.WriteFrame(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil || frames == 0 {
		t.Fatalf("%s: %d frames, %v", path, frames, err)
	}
}

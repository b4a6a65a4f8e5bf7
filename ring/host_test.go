package ring

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/host"
)

// TestWriteHost: a file that has begun takes samples of the host, and no sample begins a file.
func TestWriteHost(t *testing.T) {
	folder := t.TempDir()
	r := open(t, folder, small())
	sample := &host.Sample{At: at(0), System: 1, Ports: []uint16{7777}}
	holds := func() int {
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(folder, "*.pcapng"))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			n += bytes.Count(b, []byte(sample.Text()))
		}
		return n
	}
	put := func() {
		if err := r.WriteHost(sample); err != nil {
			t.Fatal(err)
		}
	}
	put()
	write(t, r, frame(at(0), make([]byte, 40)))
	if n := holds(); n != 0 {
		t.Errorf("the ring has %d samples from before its first frame", n)
	}
	put()
	if n := holds(); n != 1 {
		t.Errorf("the ring has %d samples, expected 1", n)
	}
}

package store

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/internal/noise"
)

// await waits until the capture has been read.
func await(t *testing.T, s *Store) {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		s.Lock()
		settled := s.Settled()
		s.Unlock()
		if settled {
			return
		}
		select {
		case <-s.Changed():
		case <-deadline:
			t.Fatal("it took more than a minute")
		}
	}
}

// A pipe that never ends keeps the figures of the flows that it keeps, and
// counts the packets over its limit.
func TestBoundedPipe(t *testing.T) {
	const packets, flows = 2000, 50
	for _, c := range []struct {
		limits analyze.Limits
		room   int // bytes; 0 for any number
		beyond int
	}{{analyze.Limits{Flows: flows}, 0, 0}, {analyze.Limits{}, 1, packets - 1}} {
		in, err := capture.Open([]string{"-"},
			capture.Options{Keep: capture.KeepAll, Stdin: io.MultiReader(bytes.NewReader(noise.Flows(packets)))})
		if err != nil {
			t.Fatal(err)
		}
		s := New(in, analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol), Limits: c.limits}, true)
		s.Bound(c.room)
		s.Start()
		t.Cleanup(func() { _ = s.Stop() })
		await(t, s)
		s.Lock()
		if len(s.figures) > flows || s.beyond != c.beyond {
			t.Errorf("room %d: figures of %d flows are kept, the limit is %d; %d packets are beyond the room, expected %d",
				c.room, len(s.figures), flows, s.beyond, c.beyond)
		}
		s.Unlock()
	}
}

// The index of a file keeps its limit in both runs, and reports it.
func TestBoundedFile(t *testing.T) {
	const packets = 40000
	path := filepath.Join(t.TempDir(), "noise.pcap")
	if err := os.WriteFile(path, noise.Flows(packets), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	o := analyze.Options{
		Registry: dissect.NewRegistry(gaffer.Protocol), Limits: analyze.Limits{Flows: 50, Room: true},
	}
	s := New(in, o, false)
	const most = 600 << 10
	s.Bound(most)
	s.Start()
	t.Cleanup(func() { _ = s.Stop() })
	await(t, s)
	s.Lock()
	defer s.Unlock()
	// The index grows by pages of 393,216 bytes: it may exceed the limit by one
	// page.
	if size := s.timeline.Size(); s.Len() >= packets || s.Len()+s.beyond != packets || size > most+400<<10 {
		t.Errorf("%d packets are kept in %d bytes, %d are beyond the bound", s.Len(), size, s.beyond)
	}
	if len(s.figures) > 50 || !strings.Contains(s.Progress(), "full (--memory)") {
		t.Errorf("%d figures, %q", len(s.figures), s.Progress())
	}
}

package truth

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
)

// Captures that no simulation makes are made of one: begun late, damaged on the way,
// or of two connections on the same addresses.

// joined returns the simulation as a capture has it that began three seconds later.
func (s simulation) joined(t *testing.T) simulation {
	t.Helper()
	path := s.named("joined")
	testenv.Output(t, testenv.Ackscope(t), "packets", "-q", "-Y", "frame.time_relative > 3", "-w", path, s.path)
	return simulation{path, s.log}
}

// headerBytes are those of IPv4 and UDP before a simulated payload.
const headerBytes = 28

// damaged returns the simulation with one bit wrong in the first bytes of every 150th
// datagram, where its numbers stand.
func (s simulation) damaged(t *testing.T) simulation {
	t.Helper()
	path, n := s.named("damaged"), 0
	rewritten(t, path, s.path, func(f *capture.Frame) bool {
		if n++; n%150 == 0 && len(f.Data) > headerBytes+3 {
			data := append([]byte(nil), f.Data...)
			data[headerBytes+n/150%4] ^= 1 << (n / 150 % 8)
			f.Data = data
		}
		return true
	})
	return simulation{path, s.log}
}

// sparse returns the simulation as a capture has it that lacks every 40th datagram.
func (s simulation) sparse(t *testing.T) simulation {
	t.Helper()
	path, n := s.named("sparse"), 0
	rewritten(t, path, s.path, func(*capture.Frame) bool { n++; return n%40 != 0 })
	return simulation{path, s.log}
}

// again returns a capture of the simulation and then, on the same addresses and so long
// after, of another one.
func (s simulation) again(t *testing.T, other simulation, after time.Duration) simulation {
	t.Helper()
	path := s.named(fmt.Sprint("again-", after))
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := writer(t, to, s.path)
	last := copied(t, w, s.path, func(*capture.Frame) bool { return true }, 0)
	copied(t, w, other.path, func(*capture.Frame) bool { return true }, last+after)
	if err := errors.Join(w.Close(), to.Close()); err != nil {
		t.Fatal(err)
	}
	return simulation{path, s.log}
}

func (s simulation) named(what string) string {
	return strings.TrimSuffix(s.path, filepath.Ext(s.path)) + "-" + what + ".pcapng"
}

// rewritten writes what change leaves of a capture.
func rewritten(t *testing.T, path, from string, change func(*capture.Frame) bool) {
	t.Helper()
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := writer(t, to, from)
	copied(t, w, from, change, 0)
	if err := errors.Join(w.Close(), to.Close()); err != nil {
		t.Fatal(err)
	}
}

// writer begins a capture of the link type of another one.
func writer(t *testing.T, to io.Writer, like string) *capture.Writer {
	t.Helper()
	in, err := capture.Open([]string{like}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var f capture.Frame
	if err := in.Next(&f); err != nil {
		t.Fatal(err)
	}
	w, err := capture.NewWriter(to, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInterface(capture.Interface{Name: "tap", LinkType: f.LinkType}); err != nil {
		t.Fatal(err)
	}
	return w
}

// copied copies the frames that take leaves, later by a time, and returns when the last
// one passed, counted from the first.
func copied(
	t *testing.T, w *capture.Writer, path string, take func(*capture.Frame) bool, later time.Duration,
) (last time.Duration) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var f capture.Frame
	begun := false
	first := f.At
	for {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return last
		} else if err != nil {
			t.Fatal(err)
		}
		if !begun {
			first, begun = f.At, true
		}
		last = f.At.Sub(first)
		if !take(&f) {
			continue
		}
		f.At, f.Interface, f.Options = f.At.Add(later), 0, nil
		if err := w.WriteFrame(&f); err != nil {
			t.Fatal(err)
		}
	}
}

package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

func options() analyze.Options {
	return analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol), Limits: analyze.LiveLimits}
}

// recorded returns a capture with loss, unpacked.
func recorded(t *testing.T) []byte {
	t.Helper()
	return testenv.Unpacked(t, testenv.Capture(t, "reliable-burst.client.pcap.gz"))
}

// once analyses a capture as a file.
func once(t *testing.T, data []byte) *analyze.Session {
	t.Helper()
	in, err := capture.Open([]string{"-"}, capture.Options{Stdin: bytes.NewReader(data)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := analyze.Run(in, options())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// told returns what a session found.
func told(s *analyze.Session) (packets uint64, findings int) {
	for _, f := range s.Flows() {
		packets += f.Packets[0] + f.Packets[1]
		findings += len(f.Findings())
	}
	return packets, findings
}

// TestGrowingFile: a file is read while it is written, and what is found is that of the whole file.
func TestGrowingFile(t *testing.T) {
	data, path := recorded(t), filepath.Join(t.TempDir(), "match.pcap")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	written := make(chan struct{})
	go func() {
		defer close(written)
		for rest := data; len(rest) > 0; { // in pieces that end within records
			n := min(40_001, len(rest))
			_, _ = out.Write(rest[:n])
			rest = rest[n:]
			time.Sleep(time.Millisecond)
		}
	}()
	in, err := Follow(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	want := once(t, data)
	packets, findings := told(want)
	var found, snapshots int
	ended := map[Why]int{}
	o := options()
	o.Found = func(*analyze.Finding) { found++ }
	s, err := Run(ctx, in, Options{
		Analysis: o, Every: time.Millisecond,
		Ended: func(_ *analyze.Flow, why Why) { ended[why]++ },
		Snapshot: func(s *analyze.Session) {
			snapshots++
			if n, _ := told(s); n == packets {
				cancel()
			}
		},
	})
	<-written
	if err != nil {
		t.Fatal(err)
	}
	if n, m := told(s); n != packets || m != findings || n == 0 || m == 0 {
		t.Errorf("%d packets with %d findings, expected %d with %d", n, m, packets, findings)
	}
	if found < findings || snapshots == 0 || ended[WhyEnd] != len(want.Flows()) || len(ended) != 1 {
		t.Errorf("found %d, %d snapshots, ended %v", found, snapshots, ended)
	}
}

// stuck is a source that returns some frames, and then waits.
type stuck struct {
	capture.Source
	left int
	free chan struct{}
	back chan struct{} // closed when the wait has ended
}

func (s *stuck) Next(f *capture.Frame) error {
	if s.left--; s.left >= 0 {
		return s.Source.Next(f)
	}
	<-s.free
	defer close(s.back)
	return s.Source.Next(f)
}

// stoppable is one that Stop ends.
type stoppable struct{ stuck }

func (s *stoppable) Stop() { close(s.free) }

func source(t *testing.T) stuck {
	t.Helper()
	in, err := capture.Open([]string{"-"}, capture.Options{Stdin: bytes.NewReader(recorded(t))})
	if err != nil {
		t.Fatal(err)
	}
	return stuck{in, 500, make(chan struct{}), make(chan struct{})}
}

// TestContextEndsAWaitingSource: a source that waits for ever does not keep the run. What it returns
// later changes nothing.
func TestContextEndsAWaitingSource(t *testing.T) {
	src := source(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended, frames := 0, 0
	l := New(&src, Options{
		Analysis: options(), Grace: time.Millisecond, Every: time.Millisecond,
		Ended: func(*analyze.Flow, Why) { ended++ },
		Frame: func(*capture.Frame) error {
			if frames++; frames == 500 {
				cancel()
			}
			return nil
		},
	})
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	flows := l.Session().Flows()
	packets, _ := told(l.Session())
	if ended != len(flows) || ended == 0 || packets == 0 {
		t.Errorf("%d of %d flows ended, %d packets", ended, len(flows), packets)
	}
	close(src.free)
	<-src.back
	l.Do(func(s *analyze.Session) {
		if n, _ := told(s); n != packets || frames != 500 {
			t.Errorf("%d packets became %d: the source went on after the end", packets, n)
		}
	})
}

// TestContextStopsASource: a source with Stop is stopped, and what it still returns counts.
func TestContextStopsASource(t *testing.T) {
	src := stoppable{source(t)}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	frames := 0
	s, err := Run(ctx, &src, Options{
		Analysis: options(), Grace: time.Hour, Frame: func(*capture.Frame) error { frames++; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := told(s); frames <= 500 || n == 0 {
		t.Errorf("%d frames, %d packets", frames, n)
	}
}

func (s *stoppable) Next(f *capture.Frame) error {
	if s.left--; s.left == 0 {
		<-s.free
	}
	return s.Source.Next(f)
}

// TestErrorOfAFrameEndsTheRun: the run returns it, and what was read is settled.
func TestErrorOfAFrameEndsTheRun(t *testing.T) {
	src, full := source(t), errors.New("the disk is full")
	n, ended := 0, 0
	s, err := Run(context.Background(), &src, Options{
		Analysis: options(), Ended: func(*analyze.Flow, Why) { ended++ },
		Frame: func(*capture.Frame) error {
			if n++; n == 100 {
				return full
			}
			return nil
		},
	})
	if !errors.Is(err, full) || ended != len(s.Flows()) || ended == 0 {
		t.Errorf("%v, %d flows ended", err, ended)
	}
}

// TestFlowsEndWithAReason: flows that a limit removes end before the run does, each flow once.
func TestFlowsEndWithAReason(t *testing.T) {
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const rawIP = 101
	if _, err := w.AddInterface(capture.Interface{LinkType: rawIP}); err != nil {
		t.Fatal(err)
	}
	for i := range 100 { // a datagram a second, each from another host
		data := []byte{
			0x45, 0, 0, 29, 0, byte(i + 1), 0, 0, 64, 17, 0, 0, 10, 0, 1, byte(i), 10, 0, 0, 1,
			1, 0, 2, 0, 0, 9, 0, 0, byte(i),
		}
		at := machine.Instant(i) * machine.Instant(time.Second)
		if err := w.WriteFrame(&capture.Frame{At: at, Length: len(data), Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := capture.Open([]string{"-"}, capture.Options{Stdin: &b})
	if err != nil {
		t.Fatal(err)
	}
	o, gone := options(), 0
	o.Limits.Idle = 10 * time.Second
	o.Gone = func(*analyze.Flow, analyze.Reason) { gone++ }
	ended, ids := map[string]int{}, map[int]bool{}
	s, err := Run(context.Background(), in, Options{Analysis: o, Ended: func(f *analyze.Flow, why Why) {
		ended[why.String()]++
		if ids[f.ID] {
			t.Errorf("flow %d ended twice", f.ID)
		}
		ids[f.ID] = true
	}})
	if err != nil {
		t.Fatal(err)
	}
	if ended["idle"] != gone || gone == 0 || ended["end"] != len(s.Flows()) || len(ids) != 100 {
		t.Errorf("ended %v, %d gone", ended, gone)
	}
}

// TestShrunkFile: a file that was written anew is an error, and not a wait without end.
func TestShrunkFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "match.pcap")
	if err := os.WriteFile(path, recorded(t), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := Follow(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := os.Truncate(path, 24); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), in, Options{Analysis: options()}); err == nil {
		t.Error("expected an error")
	}
}

// TestFollowWaitsForTheHead: an empty file waits for its head, until the context is done.
func TestFollowWaitsForTheHead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "match.pcap")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Follow(ctx, path); err == nil || errors.Is(err, io.EOF) && ctx.Err() == nil {
		t.Errorf("found %v", err)
	}
}

func TestDropped(t *testing.T) {
	if n := Dropped(counts{{OSDropped: 3, Dropped: 4}, {OSDropped: 5}}); n != 12 {
		t.Errorf("found %d", n)
	}
	if n := Dropped(counts(nil)); n != 0 {
		t.Errorf("found %d", n)
	}
}

type counts []capture.Statistics

func (c counts) Statistics() ([]capture.Statistics, error) {
	if c == nil {
		return nil, io.EOF
	}
	return c, nil
}

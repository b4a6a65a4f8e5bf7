package threads

import (
	"bytes"
	"errors"
	"net/netip"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/rehost"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/traffic"
)

// learned is what one of two processes has after a first run that they share.
type learned struct {
	survey *analyze.Survey
	err    error
	gave   int // bytes for the other process
}

// together learns of a capture in two processes that share the run. They trade by the two channels,
// and spoil stands between them.
func together(t *testing.T, x subject, o analyze.Options, spoil func(share int, told []byte) []byte) (both [2]learned) {
	t.Helper()
	told := [2]chan []byte{make(chan []byte, 1), make(chan []byte, 1)}
	done := make(chan int)
	for share := range both {
		in, err := capture.Open(x.paths, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close() })
		go func() {
			k := &both[share]
			k.survey, k.err = analyze.LearnWith(&analyze.Partner{Capture: x.name, Share: share, Trade: func(own []byte) []byte {
				k.gave = len(own)
				told[share] <- spoil(share, own)
				return <-told[1-share]
			}}, in, o)
			done <- share
		}()
	}
	<-done
	<-done
	return both
}

// alone learns of a capture in one process.
func alone(t *testing.T, x subject, o analyze.Options) (*analyze.Survey, error) {
	t.Helper()
	in, err := capture.Open(x.paths, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	s, err := analyze.Learn(in, o)
	if err != nil {
		return nil, err
	}
	return s.Survey(), nil
}

func honest(_ int, told []byte) []byte { return told }

func shareOptions() analyze.Options {
	return analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)}
}

// crossing makes captures of Riptide whose flows concern each other. A client moves, soon before the end of
// the capture or long before it. Another capture has ICMP errors.
func crossing(t *testing.T) (list []subject) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "six.pcapng")
	packets := rehost.Simulated(t, path, "riptide", "--clients", "6", "--no-limits", "--duration", "60s")
	for name, last := range map[string]int{"moved": packets / 2, "moved-late": packets * 9 / 10} {
		list = append(list, subject{name, []string{rehosted(t, path, func(n int, end netip.AddrPort) netip.AddrPort {
			if n < last || end.Addr() != netip.AddrFrom4([4]byte{10, 0, 0, 5}) {
				return end
			}
			return netip.AddrPortFrom(end.Addr(), end.Port()+1)
		})}})
	}
	refused := filepath.Join(testenv.Module(t), "testdata", "kernel", "refused.pcapng.gz")
	return append(list, subject{"riptide-and-icmp", []string{path, refused}})
}

// TestLearnWithCrossing: each process makes the whole run where flows of both shares concern each other.
func TestLearnWithCrossing(t *testing.T) {
	for _, x := range crossing(t) {
		want, err := alone(t, x, shareOptions())
		if err != nil {
			t.Fatal(err)
		}
		both := together(t, x, shareOptions(), honest)
		if both[0].gave > 0 && both[1].gave > 0 {
			t.Errorf("%s: two processes shared the run", x.name)
		}
		for share, got := range both {
			if got.err != nil || !reflect.DeepEqual(got.survey, want) {
				t.Errorf("%s: process %d learned otherwise than one that is alone: %v", x.name, share, got.err)
			}
		}
	}
}

// TestLearnWith: two processes that share a first run learn what one learns that makes it alone.
func TestLearnWith(t *testing.T) {
	subjects := made(t)
	list, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "*.pcap*"))
	if err != nil || len(list) < 100 {
		t.Fatal(len(list), err)
	}
	every := 7
	if testenv.Whole() {
		every = 1
	}
	for i := 0; i < len(list); i += every {
		subjects = append(subjects, subject{filepath.Base(list[i]), list[i : i+1]})
	}
	shared, whole := 0, 0
	for _, x := range subjects {
		want, trouble := alone(t, x, shareOptions())
		both := together(t, x, shareOptions(), honest)
		for share, got := range both {
			if (got.err == nil) != (trouble == nil) || !reflect.DeepEqual(got.survey, want) {
				t.Errorf("%s: process %d learned otherwise than one that is alone: %v, %v", x.name, share, got.err, trouble)
			}
		}
		switch both[0].gave > 0 && both[1].gave > 0 {
		case true:
			shared++
		case false:
			whole++
		}
	}
	t.Logf("of %d captures, two processes shared the run over %d", shared+whole, shared)
	if shared < 5 || whole < 5 {
		t.Errorf("two processes shared the run over %d captures, and not over %d", shared, whole)
	}
}

// changed changes what a process tells of a flow, so that it shows where the other one uses it.
func changed(told []byte) []byte {
	return bytes.Replace(told, []byte(`"Settled":true`), []byte(`"Settled":false`), 1)
}

// TestLearnWithTrouble: where the other process says nothing, or what makes no sense, each makes the
// whole run.
func TestLearnWithTrouble(t *testing.T) {
	x := subject{"clean", []string{testenv.Capture(t, "u221_clean.client.pcap.gz")}}
	want, err := alone(t, x, shareOptions())
	if err != nil {
		t.Fatal(err)
	}
	used := together(t, x, shareOptions(), func(_ int, told []byte) []byte { return changed(told) })
	if reflect.DeepEqual(used[0].survey, want) && reflect.DeepEqual(used[1].survey, want) {
		t.Error("what one process tells changes nothing")
	}
	for name, spoil := range map[string]func([]byte) []byte{
		"nothing": func([]byte) []byte { return nil },
		"half":    func(told []byte) []byte { return told[:len(told)/2] },
		"another protocol": func([]byte) []byte {
			return []byte(`{"Flows":[{"Protocol":"quic","Config":{}}]}`)
		},
		"another capture": func(told []byte) []byte {
			return changed(bytes.Replace(told, []byte(`"clean"`), []byte(`"lobby"`), 1))
		},
		"a capture that grew": func(told []byte) []byte {
			return changed(bytes.Replace(told, []byte(`"Frames":`), []byte(`"Frames":1`), 1))
		},
		"no configuration": func([]byte) []byte { return []byte(`{"Flows":[{"Protocol":"riptide"}]}`) },
		"no dialect": func([]byte) []byte {
			return []byte(`{"Flows":[{"Protocol":"riptide","Config":{},"Own":"e30="}]}`)
		},
	} {
		both := together(t, x, shareOptions(), func(_ int, told []byte) []byte { return spoil(told) })
		for share, got := range both {
			if got.err != nil || !reflect.DeepEqual(got.survey, want) {
				t.Errorf("%s: process %d: %v", name, share, got.err)
			}
		}
	}
}

// counting counts the frames that are read.
type counting struct {
	*capture.Input
	frames int
}

func (c *counting) Next(f *capture.Frame) error {
	c.frames++
	return c.Input.Next(f)
}

// TestLearnWithSoon: where the processes cannot share a run, or would gain nothing, each makes its own
// at once. What is read of a capture before that shows it.
func TestLearnWithSoon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one.pcapng")
	one := rehost.Simulated(t, path, "riptide", "--clients", "1", "--no-limits", "--duration", "150s")
	gaffer := synthetic(t, traffic.Options{Packets: 10_000, Flows: 24, Loss: 0.05, Seed: 1})
	srdp := filepath.Join(t.TempDir(), "srdp.pcapng")
	rehost.Simulated(t, srdp, "srdp", "--clients", "8", "--duration", "4s")
	if one < 9_000 {
		t.Fatalf("%d packets, expected 9,000 at least", one)
	}
	for _, x := range []struct {
		path string
		most int // frames
	}{{path, 4_097}, {gaffer, 2_000}, {srdp, 200}} {
		in, err := capture.Open([]string{x.path}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		src := &counting{Input: in}
		p := analyze.Partner{Trade: func(own []byte) []byte {
			if len(own) > 0 || src.frames > x.most {
				t.Errorf("%s: it gave %d bytes after %d frames, expected none after %d at most", filepath.Base(x.path), len(own),
					src.frames, x.most)
			}
			return nil
		}}
		if _, err := analyze.LearnWith(&p, src, shareOptions()); err != nil {
			t.Error(err)
		}
	}
}

// broken is a source that fails.
type broken struct {
	*capture.Input
	err error
}

func (b broken) Next(*capture.Frame) error { return b.err }

// TestLearnWithFailure: a process that cannot read says so to the other one, which then does not wait.
func TestLearnWithFailure(t *testing.T) {
	in, err := capture.Open([]string{testenv.Capture(t, "u221_clean.client.pcap.gz")}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	unreadable := errors.New("unreadable")
	traded := 0
	p := analyze.Partner{Trade: func(own []byte) []byte {
		traded++
		if len(own) > 0 {
			t.Errorf("it gave %q", own)
		}
		return nil
	}}
	_, err = analyze.LearnWith(&p, broken{in, unreadable}, shareOptions())
	if !errors.Is(err, unreadable) || traded != 1 {
		t.Errorf("error %v, and it traded %d times", err, traded)
	}
}

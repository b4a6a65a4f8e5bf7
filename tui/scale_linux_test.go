package tui

import (
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/filter/fields"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// TestScale measures a large capture, ACKSCOPE_SCALE=FILE.pcap. It prints the
// time to the first screen, of both runs, and of a jump with its state. It also
// prints the size of the heap.
func TestScale(t *testing.T) {
	path := os.Getenv("ACKSCOPE_SCALE")
	if path == "" {
		t.Skip("ACKSCOPE_SCALE names no capture to measure")
	}
	begun := time.Now()
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	registry := dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
	s := store.New(in, analyze.Options{Registry: registry}, false)
	s.Start()
	defer func() { _ = s.Stop() }()
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	screen.SetSize(160, 50)
	m := NewModel(s, Options{Table: fields.NewTable(fields.Options{Registry: registry, Rules: analyze.Rules})})
	th, err := draw.NewTheme("dark", 256)
	if err != nil {
		t.Fatal(err)
	}
	await(t, s, func() bool { return s.Len() > 0 })
	s.Lock()
	m.Open(0)
	m.draw(draw.NewCanvas(screen, th))
	s.Unlock()
	screen.Show()
	t.Logf("first screen after %v", time.Since(begun))
	for pass := 2; pass <= 3; pass++ {
		for {
			s.Lock()
			done := s.Pass() >= pass
			s.Unlock()
			if done {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("run %d over after %v", pass-1, time.Since(begun))
	}
	s.Lock()
	defer s.Unlock()
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	t.Logf("%d packets, heap %.1f MB: %.1f bytes a packet; from the system %.1f MB", s.Len(), float64(mem.HeapAlloc)/1e6,
		float64(mem.HeapAlloc)/float64(s.Len()), float64(mem.Sys)/1e6)
	rng := rand.New(rand.NewPCG(1, 2))
	runtime.LockOSThread()
	var views [2]machine.View
	var took, cpu []time.Duration
	const jumps = 500
	for range jumps {
		n := rng.IntN(s.Len())
		f := s.FlowOf(n)
		if f == nil {
			continue
		}
		from, busy := time.Now(), threadTime(t)
		if err := s.StateAt(f, n, &views); err != nil {
			t.Fatal(err)
		}
		took, cpu = append(took, time.Since(from)), append(cpu, threadTime(t)-busy)
	}
	for _, x := range []struct {
		what  string
		times []time.Duration
	}{{"", took}, {", time of the processor alone", cpu}} {
		slices.Sort(x.times)
		sum, n := time.Duration(0), len(x.times)
		for _, d := range x.times {
			sum += d
		}
		t.Logf("jump with its state%s: mean %v, median %v, p99 %v, worst %v of %d", x.what, sum/time.Duration(n),
			x.times[n/2], x.times[n*99/100], x.times[n-1], n)
	}
}

// threadTime returns the processor time that the thread has used.
func threadTime(t *testing.T) time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

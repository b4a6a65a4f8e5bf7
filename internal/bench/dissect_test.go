//go:build unix

package bench

import (
	"errors"
	"io"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	files "github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/machine"
)

// BenchmarkDissect opens a capture, decodes every frame, and dissects every
// datagram field by field. It compares that with libpcap's loop, and counts
// allocations.
func BenchmarkDissect(b *testing.B) {
	count := counter(b)
	path, packets, _ := capture(b, million, 64)
	var article *dissect.Config
	for _, p := range gaffer.Protocol.Profiles {
		if p.Name == "article" {
			article = p.Config
		}
	}
	if article == nil {
		b.Fatal("gaffer has no profile named article")
	}
	var r ratio
	var allocated uint64
	for b.Loop() {
		theirs := measure(b, count, path)
		ours := self(func() {
			if n := dissectAll(b, path, gaffer.Protocol, article, 4); n != packets {
				b.Fatalf("%d packets dissected, expected %d", n, packets)
			}
		})
		r.add(ours.usage, theirs)
		allocated += ours.mallocs
	}
	b.ReportMetric(r.ours.Seconds()/r.theirs.Seconds(), "x-libpcap")
	b.ReportMetric(float64(r.ours.Nanoseconds())/float64(b.N*packets), "cpu-ns/packet")
	b.ReportMetric(float64(allocated)/float64(b.N*packets), "allocs/packet")
}

// dissectAll dissects every datagram of a capture, as one flow whose side a has
// the higher port. It expects at least so many fields of each datagram.
func dissectAll(b *testing.B, path string, protocol *dissect.Protocol, config *dissect.Config,
	least int,
) (packets int) {
	b.Helper()
	in, err := files.Open([]string{path}, files.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	decoder := files.NewDecoder(files.DecodeOptions{})
	var frame files.Frame
	var packet files.Packet
	var d dissect.Dissection
	var datagram machine.Datagram
	context := dissect.Context{Config: config}
	for {
		if err := in.Next(&frame); errors.Is(err, io.EOF) {
			return packets
		} else if err != nil {
			b.Fatal(err)
		}
		decoder.Decode(&frame, &packet)
		if packet.Transport != files.UDP {
			continue
		}
		context.From = machine.A
		if packet.Src.Port() < packet.Dst.Port() {
			context.From = machine.B
		}
		d.Reset()
		datagram = machine.Datagram{
			At: packet.At, Ref: packet.Ref, From: context.From, Bytes: packet.Payload,
			Length: packet.Length,
		}
		protocol.Dissect(context, &datagram, &d)
		if d.Problem != nil || len(d.Fields) < least {
			b.Fatalf("packet %d: %d fields, %v", packets+1, len(d.Fields), d.Problem)
		}
		packets++
	}
}

// BenchmarkAnalyze counts the allocations of a whole analysis: flows,
// detection, both sides' state, findings.
func BenchmarkAnalyze(b *testing.B) {
	path, packets, flows := capture(b, million, 64)
	var allocated uint64
	for b.Loop() {
		allocated += self(func() {
			in, err := files.Open([]string{path}, files.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer in.Close()
			s, err := analyze.Run(in, analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol)})
			if err != nil {
				b.Fatal(err)
			}
			if len(s.Flows()) != flows {
				b.Fatalf("%d flows, expected %d", len(s.Flows()), flows)
			}
		}).mallocs
	}
	b.ReportMetric(float64(allocated)/float64(b.N*packets), "allocs/packet")
}

type selfUsage struct {
	usage
	mallocs uint64
}

// self runs f and returns the resources that this process used.
func self(f func()) selfUsage {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := processTime()
	f()
	u := selfUsage{usage: usage{cpu: processTime() - start}}
	runtime.ReadMemStats(&after)
	u.mallocs = after.Mallocs - before.Mallocs
	return u
}

func processTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

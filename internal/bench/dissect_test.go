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
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/machine"
)

// BenchmarkDissect opens a capture, decodes every frame, and dissects every
// datagram field by field. It compares that with libpcap's loop, and counts
// allocations.
func BenchmarkDissect(b *testing.B) {
	count := counter(b)
	list := inputs(b)
	for i, protocol := range []*dissect.Protocol{gaffer.Protocol, riptide.Protocol, srdp.Protocol} {
		in := list[i]
		config := analyzed(b, in.path, analyze.Options{Registry: dissect.NewRegistry(protocol)}).Flows()[0].Config()
		b.Run(in.name, func(b *testing.B) {
			turns(b, func(f figures) {
				floor := measure(b, 1, count, in.path)
				ours := self(func() {
					if n := dissectAll(b, in.path, protocol, config, 2); n != in.packets {
						b.Fatalf("%d packets dissected, expected %d", n, in.packets)
					}
				})
				f.add("x-libpcap", ours.cpu.Seconds()/floor.cpu.Seconds())
				f.add("cpu-ns/packet", float64(ours.cpu.Nanoseconds())/float64(in.packets))
				f.add("allocs/packet", float64(ours.mallocs)/float64(in.packets))
			})
		})
	}
}

func analyzed(tb testing.TB, path string, o analyze.Options) *analyze.Session {
	tb.Helper()
	in, err := files.Open([]string{path}, files.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer in.Close()
	s, err := analyze.Run(in, o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
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

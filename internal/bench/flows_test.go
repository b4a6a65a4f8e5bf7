package bench

import (
	"fmt"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

const million = 1_000_000

// BenchmarkFlows runs `ackscope flows` with everything on, over a million
// packets in 64 flows. It compares that with libpcap's loop on the same file.
func BenchmarkFlows(b *testing.B) {
	count := counter(b)
	path, packets, flows := capture(b, million, 64)
	ackscope := program(b, path, flows)
	var r ratio
	for b.Loop() {
		theirs := measure(b, count, path)
		r.add(measure(b, ackscope, "flows", path), theirs)
	}
	b.ReportMetric(r.ours.Seconds()/r.theirs.Seconds(), "x-libpcap")
	b.ReportMetric(float64(r.ours.Nanoseconds())/float64(b.N*packets), "cpu-ns/packet")
}

// BenchmarkTshark compares it with tshark and a Lua dissector and tap that
// rebuild a part of it.
func BenchmarkTshark(b *testing.B) {
	tshark := testenv.Need(b, "tshark")
	path, _, flows := capture(b, million, 64)
	ackscope := program(b, path, flows)
	var r ratio
	for b.Loop() {
		theirs := measure(b, tshark, "-q", "-X", "lua_script:testdata/reconstruct.lua", "-r", path)
		r.add(measure(b, ackscope, "flows", path), theirs)
	}
	b.ReportMetric(r.theirs.Seconds()/r.ours.Seconds(), "x-faster-than-tshark")
}

// BenchmarkMemory measures the peak memory, which does not grow with packets.
func BenchmarkMemory(b *testing.B) {
	small, _, flows := capture(b, million, 64)
	large, _, _ := capture(b, 10*million, 64)
	ackscope := program(b, small, flows)
	var at, ten usage
	for b.Loop() {
		at, ten = measure(b, ackscope, "flows", small), measure(b, ackscope, "flows", large)
	}
	b.ReportMetric(float64(at.peak)/(1<<20), "MiB-1M")
	b.ReportMetric(float64(ten.peak)/(1<<20), "MiB-10M")
	b.ReportMetric(float64(ten.peak)/float64(at.peak), "x-10M/1M")
}

// BenchmarkManyFlows has 100,000 flows of 10 packets, all at once.
func BenchmarkManyFlows(b *testing.B) {
	count := counter(b)
	path, packets, flows := capture(b, million, million/10)
	ackscope := program(b, path, flows)
	var r ratio
	var u usage
	for b.Loop() {
		theirs := measure(b, count, path)
		u = measure(b, ackscope, "flows", path)
		r.add(u, theirs)
	}
	b.ReportMetric(float64(u.peak)/(1<<20), "MiB")
	b.ReportMetric(r.ours.Seconds()/r.theirs.Seconds(), "x-libpcap")
	b.ReportMetric(float64(r.ours.Nanoseconds())/float64(b.N*packets), "cpu-ns/packet")
}

// BenchmarkCommands measures the other commands on the same packets.
func BenchmarkCommands(b *testing.B) {
	path, packets, flows := capture(b, million, 64)
	ackscope := program(b, path, flows)
	for _, args := range [][]string{{"events", "--json"}, {"findings"}, {"packets"}, {"packets", "--json"}} {
		b.Run(fmt.Sprint(args), func(b *testing.B) {
			var r ratio
			for b.Loop() {
				r.add(measure(b, ackscope, append(args, path)...), usage{})
			}
			b.ReportMetric(float64(r.ours.Nanoseconds())/float64(b.N*packets), "cpu-ns/packet")
		})
	}
}

package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/traffic"
)

// commands are the rows of the table, with the ratio to the C loop that they must reach.
var commands = []struct {
	name string
	must float64
}{{"flows", 2.8}, {"findings", 4.5}, {"events", 8}, {"packets", 8}, {"ledger", 8}, {"replay", 6}}

// BenchmarkTable compares each command with libpcap's loop on the same file: processor time with one thread. It also
// compares two threads with one: wall time, processor time, and beside them the wall time of a pure CPU loop. With
// ACKSCOPE_BENCH_PAGE set, it writes the table of docs/performance.md.
func BenchmarkTable(b *testing.B) {
	count, list := counter(b), builds(b)
	var table bytes.Buffer
	fmt.Fprintf(&table, rowForm, "", "now", "before", "must", "wall 2/1", "CPU 2/1", "loop 2/1")
	for _, in := range inputs(b) {
		check(b, in)
		for _, c := range commands {
			var f figures
			b.Run(in.name+"/"+c.name, func(b *testing.B) {
				f = turns(b, func(f figures) {
					floor := measure(b, 1, count, in.path)
					for _, p := range list {
						one, two := measure(b, 1, p.path, c.name, in.path), measure(b, 2, p.path, c.name, in.path)
						f.add(p.prefix+"x-libpcap", one.cpu.Seconds()/floor.cpu.Seconds())
						f.add(p.prefix+"cpu-ns/packet", float64(one.cpu.Nanoseconds())/float64(in.packets))
						f.add(p.prefix+"wall-2/1", two.wall.Seconds()/one.wall.Seconds())
						f.add(p.prefix+"cpu-2/1", two.cpu.Seconds()/one.cpu.Seconds())
					}
					f.add("loop-2/1", spun(2)/spun(1))
				})
			})
			fmt.Fprintf(&table, rowForm, c.name+" "+in.name, f.text("x-libpcap"), f.text("before-x-libpcap"),
				fmt.Sprint(c.must), f.text("wall-2/1"), f.text("cpu-2/1"), f.text("loop-2/1"))
		}
	}
	if os.Getenv("ACKSCOPE_BENCH_PAGE") != "" {
		page := filepath.Join("..", "..", "docs", "performance.md")
		testenv.HoldTable(b, page, "make bench BENCH=Table", table.Bytes(), true)
	}
}

// rowForm is a row of the table on the page.
const rowForm = "%-18s%8s%8s%8s%10s%10s%10s\n"

// BenchmarkManyFlows compares 1.2 million packets in 100,000 flows, all at once, with as many in 64 flows. It also
// compares two threads with one.
func BenchmarkManyFlows(b *testing.B) {
	many, few := synthetic(b, 1_200_000, 100_000, 0.05), synthetic(b, 1_200_000, 64, 0.05)
	check(b, many)
	for _, command := range []string{"flows", "findings"} {
		b.Run(command, func(b *testing.B) {
			list := builds(b)
			turns(b, func(f figures) {
				for _, p := range list {
					one, two := measure(b, 1, p.path, command, many.path), measure(b, 2, p.path, command, many.path)
					f.add(p.prefix+"x-64-flows", one.cpu.Seconds()/measure(b, 1, p.path, command, few.path).cpu.Seconds())
					f.add(p.prefix+"wall-2/1", two.wall.Seconds()/one.wall.Seconds())
					f.memory(p.prefix, start(b, 0, nil, p.path, command, many.path).watch().end(b))
				}
			})
		})
	}
}

// memory adds the peaks of a process.
func (f figures) memory(prefix string, u usage) {
	f.add(prefix+"MiB", float64(u.peak)/mebibyte)
	f.add(prefix+"anonymous-MiB", float64(u.anonymous)/mebibyte)
}

// BenchmarkMemory measures the peak of resident memory, which does not grow with packets. Pages of the mapped capture
// are part of it, but not of the anonymous memory.
func BenchmarkMemory(b *testing.B) {
	for _, millions := range []int{1, 10} {
		in := synthetic(b, millions*million, 64, 0.05)
		check(b, in)
		b.Run(fmt.Sprint(millions, "M"), func(b *testing.B) {
			list := builds(b)
			turns(b, func(f figures) {
				for _, p := range list {
					f.memory(p.prefix, start(b, 0, nil, p.path, "flows", in.path).watch().end(b))
				}
			})
		})
	}
}

// BenchmarkStart measures the wall time of runs with little to do.
func BenchmarkStart(b *testing.B) {
	small := file(b, "small.pcap", func(f *os.File) error {
		return traffic.Write(f, traffic.Options{Packets: 100, Flows: 2, Seed: 1})
	})
	for _, args := range [][]string{{"version"}, {"flows", small}} {
		b.Run(args[0], func(b *testing.B) {
			list := builds(b)
			turns(b, func(f figures) {
				for _, p := range list {
					f.add(p.prefix+"ms", float64(measure(b, 0, p.path, args...).wall)/float64(time.Millisecond))
				}
			})
		})
	}
}

// BenchmarkTshark compares `ackscope flows` with tshark and a Lua dissector and tap that rebuild a part of it.
func BenchmarkTshark(b *testing.B) {
	tshark, in := testenv.Need(b, "tshark"), synthetic(b, million, 64, 0.05)
	check(b, in)
	program := testenv.Ackscope(b)
	f := figures{}
	for b.Loop() {
		theirs := measure(b, 1, tshark, "-q", "-X", "lua_script:testdata/reconstruct.lua", "-r", in.path)
		f.add("x", theirs.cpu.Seconds()/measure(b, 1, program, "flows", in.path).cpu.Seconds())
	}
	b.ReportMetric(f.median("x"), "x-faster-than-tshark")
}

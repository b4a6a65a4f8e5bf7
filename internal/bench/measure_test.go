package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// usage is the resources that a process used.
type usage struct {
	cpu, wall time.Duration // cpu: user and system
	// Of a process that was watched: the peak of its resident memory in bytes, and of what belongs to no file.
	peak, anonymous int64
}

// process is a program that runs.
type process struct {
	*exec.Cmd
	begun     time.Time
	complaint bytes.Buffer
	watched   sync.WaitGroup
	// Peaks, as in usage.
	peak, anonymous int64
}

// start begins a program with so many threads, or with one for each core if threads is 0. Its output goes to the null
// device.
func start(tb testing.TB, threads int, in io.Reader, name string, args ...string) *process {
	tb.Helper()
	p := &process{Cmd: exec.Command(name, args...)}
	p.Stdin, p.Stderr = in, &p.complaint
	if threads > 0 {
		p.Env = append(os.Environ(), fmt.Sprint("GOMAXPROCS=", threads))
	}
	p.begun = time.Now()
	if err := p.Start(); err != nil {
		tb.Fatal(err)
	}
	return p
}

// end waits for the end. A command that fails, fails the benchmark.
func (p *process) end(tb testing.TB) usage {
	tb.Helper()
	err := p.Wait()
	wall := time.Since(p.begun)
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s", filepath.Base(p.Path), strings.Join(p.Args[1:], " "), err, p.complaint.Bytes())
	}
	p.watched.Wait()
	state := p.ProcessState
	return usage{state.UserTime() + state.SystemTime(), wall, p.peak, p.anonymous}
}

// watch reads the memory until the process ends. Linux keeps no peak of what is anonymous, so it is read all the time.
// What it says of an ended process is no use: a child begins with the peak of its parent, and this one is large.
func (p *process) watch() *process {
	path := fmt.Sprintf("/proc/%d/status", p.Process.Pid)
	p.watched.Go(func() {
		for {
			status, err := os.ReadFile(path)
			if err != nil {
				return // it has ended
			}
			for field, peak := range map[string]*int64{"VmHWM:": &p.peak, "RssAnon:": &p.anonymous} {
				_, text, found := strings.Cut(string(status), field)
				if !found {
					return // it has ended
				}
				var kib int64
				if _, err := fmt.Sscan(text, &kib); err == nil {
					*peak = max(*peak, kib<<10)
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
	return p
}

// measure runs a program to its end.
func measure(tb testing.TB, threads int, name string, args ...string) usage {
	tb.Helper()
	return start(tb, threads, nil, name, args...).end(tb)
}

// build is a program that is measured.
type build struct{ prefix, path string }

// builds returns the program of this tree, and the older one that ACKSCOPE_BENCH_BEFORE names. They take turns.
func builds(b *testing.B) []build {
	b.Helper()
	list := []build{{"", testenv.Ackscope(b)}}
	if path := os.Getenv("ACKSCOPE_BENCH_BEFORE"); path != "" {
		list = append(list, build{"before-", path})
	}
	return list
}

// figures are what was measured, by name, in the order of the turns.
type figures map[string][]float64

func (f figures) add(name string, value float64) { f[name] = append(f[name], value) }

func (f figures) median(name string) float64 {
	list := slices.Sorted(slices.Values(f[name]))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// text returns the median for a table, or a dash for what was not measured.
func (f figures) text(name string) string {
	if len(f[name]) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", f.median(name))
}

// turns measures again and again: 7 times at least, or once with -short. It reports the medians.
func turns(b *testing.B, once func(f figures)) figures {
	b.Helper()
	f, least := figures{}, 7
	if testing.Short() {
		least = 1
	}
	for b.Loop() {
		for range least {
			once(f)
		}
	}
	for name := range f {
		b.ReportMetric(f.median(name), name)
	}
	return f
}

// spun returns how long a pure CPU loop takes, shared by so many goroutines. Where two do not take half of the time of
// one, the machine has no second core to give.
func spun(goroutines int) float64 {
	const steps = 200_000_000
	begun := time.Now()
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			x := uint64(88172645463325252) // xorshift of Marsaglia, with his seed
			for range steps / goroutines {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
			}
			if x == 0 {
				panic("xorshift never gives 0")
			}
		})
	}
	group.Wait()
	return time.Since(begun).Seconds()
}

const mebibyte = 1 << 20

// counter builds the C loop.
func counter(b *testing.B) string {
	b.Helper()
	gcc := testenv.Need(b, "gcc")
	path := filepath.Join(b.TempDir(), "count")
	if out, err := exec.Command(gcc, "-O2", "-o", path, "testdata/count.c", "-lpcap").CombinedOutput(); err != nil {
		testenv.Skip(b, "gcc cannot build testdata/count.c, perhaps for want of libpcap's headers: "+string(out))
	}
	return path
}

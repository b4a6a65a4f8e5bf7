package webpage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/rehost"
	"github.com/ackscope/ackscope/internal/testenv"
)

// The limits of a large capture. Source: item 1 of the page's requirements: a million packets
const (
	largeMemory = 700 << 20 // bytes of both workers and of the page
	largeTime   = 4 * time.Second
	largeStart  = time.Second // from the navigation until both workers are ready
)

// large is a capture to measure with: about so many packets of a protocol.
type large struct {
	protocol string
	packets  int
	path     string
}

// largeOf writes a capture of Gaffer, of two endpoints.
func largeOf(t *testing.T, packets int) large {
	t.Helper()
	x := large{"gaffer", packets, filepath.Join(t.TempDir(), "gaffer.pcapng")}
	testenv.Output(t, testenv.Ackscope(t), "simulate", "--protocol", "gaffer:reliable", "--seed", "3", "--loss", "3%",
		"--delay", "30ms", "--jitter", "10ms", "--rate", "60", "--duration", fmt.Sprintf("%ds", packets/118), "--tap", "a",
		"-q", "-w", x.path)
	return x
}

// millions are captures of a million packets of the other protocols. Each client is on a host of its
// own. They are those of the benchmarks (internal/bench).
func millions(t *testing.T) (list []large) {
	t.Helper()
	for protocol, flags := range map[string]string{
		"riptide": "--duration 3950s --clients 4 --no-limits",
		"srdp":    "--duration 250s --clients 16",
	} {
		path := filepath.Join(t.TempDir(), protocol+".pcapng")
		packets := rehost.Simulated(t, path, append([]string{protocol}, strings.Fields(flags)...)...)
		if packets < 950_000 || packets > 1_050_000 {
			t.Fatalf("%s: %d packets, expected a million", protocol, packets)
		}
		list = append(list, large{protocol, packets, path})
	}
	return list
}

// A large capture stays within its memory, and scrolling to its end needs no further reading.
// ACKSCOPE_WEBSIZES=1 measures three sizes for docs/web.md, and a million packets of each other
// protocol. It holds the limit of time too: on a machine that does something else, time says nothing.
func TestLarge(t *testing.T) {
	testenv.Grid(t, "100,000 packets")
	if os.Getenv("ACKSCOPE_WEBSIZES") == "" {
		measure(t, largeOf(t, 100_000), false)
		return
	}
	list := millions(t)
	for _, packets := range []int{10_000, 100_000, 1_000_000} {
		list = append(list, largeOf(t, packets))
	}
	for _, x := range list {
		t.Run(fmt.Sprintf("%s-%d", x.protocol, x.packets), func(t *testing.T) { measure(t, x, true) })
	}
}

// measure takes a capture through the page. It holds the limits of time where nothing else runs.
func measure(t *testing.T, x large, alone bool) {
	t.Helper()
	if alone {
		_, cold := open(t, 1280, 900, false)
		started := time.Now()
		drop(t, cold, x.path)
		took := time.Since(started)
		t.Logf("%s, %d packets, dropped at once: overview after %.2f s", x.protocol, x.packets, took.Seconds())
		if took > largeTime {
			t.Errorf("dropped at once, the overview stood after %v, expected %v at most", took, largeTime)
		}
		cold.Eval(t, "location.replace('about:blank')", nil) // it must not disturb the next measurement
	}
	_, p := open(t, 1280, 900, false)
	var ready float64 // in ms after the navigation
	p.Eval(t, "performance.now()", &ready)
	waited := time.Now()
	p.Eval(t, "window.ackscope.warm()", nil) // a person takes longer to choose a file
	warm := time.Since(waited)
	started := time.Now()
	drop(t, p, x.path)
	overview := time.Since(started)
	var count int
	p.Eval(t, "window.ackscope.packets(0, 1).then(() => window.ackscope.count())", &count)
	indexed := time.Since(started)
	p.Eval(t, "document.getElementById('tab-packets').click()", nil)
	p.Until(t, "document.querySelectorAll('.vrows [role=row]').length > 3")
	p.Eval(t, "(() => { const v = document.querySelector('.vtable'); v.scrollTop = v.scrollHeight; })()", nil)
	p.Until(t, fmt.Sprintf("document.querySelector('.vrows').textContent.includes('%d')", count))
	var heap, wasm []int
	p.Eval(t, "window.ackscope.memory()", &wasm)
	p.Eval(t, "[performance.memory.usedJSHeapSize]", &heap)
	all := wasm[0] + wasm[1] + heap[0]
	t.Logf("%s, %d packets: ready after %.2f s, warm after further %.2f s, overview after %.2f s, packets after %.2f s; "+
		"workers %.0f and %.0f MB, heap of the page %.0f MB", x.protocol, count, ready/1e3, warm.Seconds(),
		overview.Seconds(), indexed.Seconds(), float64(wasm[0])/1e6, float64(wasm[1])/1e6, float64(heap[0])/1e6)
	if all > largeMemory {
		t.Errorf("%d MB in all, expected %d at most", all>>20, largeMemory>>20)
	}
	if alone && ready > float64(largeStart/time.Millisecond) {
		t.Errorf("the page was ready after %.0f ms, expected %v at most", ready, largeStart)
	}
	if alone && overview > largeTime {
		t.Errorf("the overview stood after %v, expected %v at most", overview, largeTime)
	}
}

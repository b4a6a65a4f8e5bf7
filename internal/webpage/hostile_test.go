package webpage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/chrome"
	"github.com/ackscope/ackscope/internal/testenv"
)

// watch counts what must not happen: scripts of a capture, and freezes of the page's thread. A
// script of a capture would set window.owned.
const watch = `window.owned = 0; window.frozen = 0; window.alert = () => { window.owned++; };
	new PerformanceObserver((l) => { for (const e of l.getEntries()) window.frozen = Math.max(window.frozen, e.duration); })
		.observe({ type: "longtask" }); 0`

// through goes through all views of the open capture, selects a row where there is one, and says
// what the capture did to the page.
const through = `(async () => {
	window.frozen = 0;
	for (const tab of document.querySelectorAll("[role=tab]")) {
		document.getElementById(tab.id).click();
		await window.ackscope.settled();
		const rows = document.querySelectorAll(".vrows .vrow");
		if (rows.length > 0) {
			rows[rows.length >> 1].click();
			await window.ackscope.settled();
		}
	}
	const memory = await window.ackscope.memory();
	return { owned: window.owned, frozen: window.frozen, heap: performance.memory.usedJSHeapSize,
		workers: memory[0] + memory[1], foreign: document.querySelectorAll("#view script, #view iframe, #view object").length,
		title: document.title };
})()`

// What a hostile capture may cost beside the memory of the workers, which has one limit for all.
// Source: item 3 of the page's requirements (200 ms); bound, ten times a page's usual heap
const (
	freeze      = 200 // ms for which the page's own thread may be busy
	hostileHeap = 100 << 20
)

// deeds is what through returns.
type deeds struct {
	Owned   int     `json:"owned"`
	Frozen  float64 `json:"frozen"`
	Heap    int     `json:"heap"`
	Workers int     `json:"workers"`
	Foreign int     `json:"foreign"`
	Title   string  `json:"title"`
}

// endure gives a hostile file to the page, and goes through its views. Another program can hold up
// the page as well: it is a freeze if it happens twice.
func endure(t *testing.T, p *chrome.Page, paths ...string) {
	t.Helper()
	name := filepath.Base(paths[len(paths)-1])
	var d deeds
	for range 2 {
		give(t, p, paths...)
		if p.Eval(t, through, &d); d.Frozen <= freeze {
			break
		}
	}
	if d.Owned != 0 || d.Foreign != 0 || d.Frozen > freeze || d.Heap > hostileHeap || d.Workers > largeMemory {
		t.Errorf("%s: %d scripts ran, %d foreign elements, frozen for %.0f ms, heap of the page %d MB, workers %d MB", name,
			d.Owned, d.Foreign, d.Frozen, d.Heap>>20, d.Workers>>20)
		p.Eval(t, "window.owned = 0", nil)
	}
	if !strings.HasPrefix(d.Title, name) {
		t.Errorf("%s: the page is about %q", name, d.Title)
	}
}

// faults reports the exceptions of the page.
func faults(t *testing.T, b *chrome.Browser) {
	t.Helper()
	for _, e := range b.Events("Runtime.exceptionThrown") {
		t.Errorf("%s: %.800s", e.Method, e.Params)
	}
}

// Hostile captures run no script and freeze nothing, in any view. So do hostile schemas and names.
func TestHostile(t *testing.T) {
	testenv.Grid(t, "a browser")
	root := filepath.Join(testenv.Module(t), "testdata", "hostile")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	b, p := open(t, 1280, 900, false)
	p.Eval(t, watch, nil)
	captures, schemas := 0, 0
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		switch filepath.Ext(path) {
		case ".md":
		case ".yaml":
			endure(t, p, path, filepath.Join(root, "inj.pcapng"))
			p.Eval(t, "document.querySelector('.chip button').click()", nil)
			schemas++
		default:
			endure(t, p, path)
			captures++
		}
	}
	if captures < 7 || schemas < 2 {
		t.Errorf("%d hostile captures and %d schemas", captures, schemas)
	}
	dir := t.TempDir()
	text := read(t, testenv.Capture(t, "linktype-vlan.pcap.gz"))
	for _, name := range []string{
		`<img src=x onerror=alert(1)>.pcap`, `--help`, "\u202egpj.pcap", strings.Repeat("very-long-name-", 15) + ".pcap", `a"b'c&d;e.pcap`,
	} {
		endure(t, p, written(t, dir, name, text))
	}
	faults(t, b)
}

// fuzzedAlone is how many fuzzed captures TestFuzzed takes beside other tests.
const fuzzedAlone = 12

// Captures that are damaged at random run no script and freeze nothing. ACKSCOPE_WEBFUZZ is how
// many there are: make webfuzz takes 240.
func TestFuzzed(t *testing.T) {
	long(t)
	count := fuzzedAlone
	if text := os.Getenv("ACKSCOPE_WEBFUZZ"); text != "" {
		if _, err := fmt.Sscan(text, &count); err != nil {
			t.Fatal(err)
		}
	}
	var seeds [][]byte
	for i, path := range captures(t) {
		if i%4 != 0 {
			continue
		}
		text := read(t, path)
		if filepath.Ext(path) == ".gz" {
			text = testenv.Unpacked(t, path)
		}
		if len(text) < 1<<20 {
			seeds = append(seeds, text)
		}
	}
	if len(seeds) < 5 {
		t.Fatalf("%d captures to damage", len(seeds))
	}
	b, p := open(t, 1280, 900, false)
	p.Eval(t, watch, nil)
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(24, 1))
	for n := range count {
		text := damaged(random, slices.Clone(seeds[n%len(seeds)]))
		endure(t, p, written(t, dir, fmt.Sprintf("fuzzed-%d.pcap", n), text))
	}
	faults(t, b)
}

// damaged changes bits, bytes and lengths of a capture, writes markup over some of its bytes, or
// cuts it. Its first bytes stay, so that it is still read as a capture.
func damaged(random *rand.Rand, text []byte) []byte {
	const kept = 24 // header of a pcap file
	markup := []string{"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\x1b]52;c;QQ==\a", "\u202e\u0000"}
	for range 1 + random.IntN(60) {
		at := kept + random.IntN(len(text)-kept)
		switch random.IntN(4) {
		case 0:
			text[at] ^= 1 << random.IntN(8)
		case 1:
			text[at] = byte(random.Uint32())
		case 2:
			copy(text[at:], []byte{0xff, 0xff, 0xff, 0x7f})
		default:
			copy(text[at:], markup[random.IntN(len(markup))])
		}
	}
	if random.IntN(3) == 0 {
		text = text[:kept+random.IntN(len(text)-kept)]
	}
	return text
}

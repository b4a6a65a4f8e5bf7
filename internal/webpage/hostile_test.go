package webpage

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// watch counts what must not happen: scripts of a capture, and freezes of the page's thread. A
// script of a capture would set window.owned. Source: item 3 of the page's requirements, 200 ms
const watch = `window.owned = 0; window.frozen = 0; window.alert = () => { window.owned++; };
	new PerformanceObserver((l) => { for (const e of l.getEntries()) window.frozen = Math.max(window.frozen, e.duration); })
		.observe({ type: "longtask" }); 0`

// freeze is how long the page's own thread may be busy, in milliseconds.
const freeze = 200

// Hostile captures run no script and freeze nothing, in any view. Their names are hostile too.
func TestHostile(t *testing.T) {
	testenv.Grid(t, "a browser")
	root := filepath.Join(testenv.Module(t), "testdata", "hostile")
	var list []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Ext(path) != ".yaml" {
			list = append(list, path)
		}
		return err
	})
	if err != nil || len(list) < 5 {
		t.Fatalf("%d hostile files: %v", len(list), err)
	}
	slices.Sort(list)
	b, p := open(t, 1280, 900, false)
	p.Eval(t, watch, nil)
	named := filepath.Join(t.TempDir(), `<img src=x onerror=alert(1)>.pcap`)
	text, err := os.ReadFile(testenv.Capture(t, "linktype-vlan.pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(named, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range append(list, named) {
		drop(t, p, path)
		for _, v := range views {
			p.Eval(t, "document.getElementById('tab-"+v.id+"').click()", nil)
			p.Eval(t, "window.ackscope.settled()", nil)
		}
		var owned int
		var frozen float64
		p.Eval(t, "window.owned", &owned)
		p.Eval(t, "window.frozen", &frozen)
		if owned != 0 || frozen > freeze {
			t.Errorf("%s: %d scripts ran, frozen for %.0f ms", filepath.Base(path), owned, frozen)
			p.Eval(t, "window.frozen = 0; window.owned = 0", nil)
		}
	}
	for _, e := range b.Events("Runtime.exceptionThrown") {
		t.Errorf("%s: %.800s", e.Method, e.Params)
	}
}

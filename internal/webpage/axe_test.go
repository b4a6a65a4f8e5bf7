package webpage

import (
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/internal/chrome"
	"github.com/ackscope/ackscope/internal/testenv"
)

// axe runs the rules of axe-core over the page, and names what breaks them.
const axe = `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) =>
	v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.failureSummary).join("; ")))`

// axe-core finds no violation in any view, light or dark, large or small, with what opens over it,
// and where something is wrong.
func TestAxe(t *testing.T) {
	testenv.Grid(t, "a browser")
	b, p := open(t, 1280, 900, false)
	rules := string(read(t, filepath.Join(withTools(t), "node_modules", "axe-core", "axe.min.js"))) + "; 0"
	p.Eval(t, rules, nil)
	check := func(what string) {
		t.Helper()
		var broken []string
		p.Eval(t, axe, &broken)
		for _, x := range broken {
			t.Errorf("%s: %s", what, x)
		}
	}
	check("welcome")
	drop(t, p, testenv.Capture(t, "u210_timeout_kill.client.pcap.gz"))
	for _, v := range views {
		show(t, p, v.id, v.drawn)
		check(v.id)
		p.Resize(t, 390, 844, true)
		check(v.id + " on a telephone, dark")
	}
	p.Resize(t, 1280, 900, false)
	p.Eval(t, "document.activeElement?.blur()", nil)
	p.Press(t, "?")
	p.Until(t, "document.querySelector('dialog[open]')")
	check("the list of keys")
	p.Press(t, "Escape")
	p.Until(t, "!document.querySelector('dialog')")
	p.Press(t, "3", "/")
	p.Type(t, "frame.numb")
	p.Until(t, "document.querySelectorAll('#proposals [role=option]').length > 0")
	check("proposals of the filter")
	p.Press(t, "ArrowDown")
	check("a chosen proposal")
	p.Press(t, "Escape", "Enter")
	p.Until(t, "document.querySelector('#filter-error').textContent !== ''")
	check("a wrong filter")
	p.Eval(t, "location.hash = 'file=u210_timeout_kill.client.pcap.gz&view=packets&flow=9'", nil)
	has(t, p, ".notice:not([hidden])", "flow 9")
	check("a wrong link, and no packets")
	dir := t.TempDir()
	give(t, p, written(t, dir, "letter.pcap", []byte("Dear reader, this is no capture.")))
	for _, v := range views {
		p.Eval(t, "document.getElementById('tab-"+v.id+"').click()", nil)
		settled(t, p)
		check(v.id + " of what is no capture")
	}
	complaints(t, b)
	capture := testenv.Capture(t, "u210_clean.client.pcap.gz")
	b, p = openFile(t, single(t, capture, capture), "")
	p.Eval(t, rules, nil)
	check("one file with two captures")
	complaints(t, b)
}

// outlined is a script whose value names what has the focus without an outline that shows it.
const outlined = `(() => { const e = document.activeElement, s = getComputedStyle(e);
	return e === document.body || s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1 ? "" : e.outerHTML.slice(0, 120); })()`

// The page says what happens to those who do not see it, and shows the focus to those who use keys.
func TestReader(t *testing.T) {
	long(t)
	b, p := open(t, 1280, 900, false)
	drop(t, p, testenv.Capture(t, "u210_timeout_kill.client.pcap.gz"))
	settled(t, p)
	p.Until(t, "document.querySelector('main > [role=status]').textContent === "+
		"document.querySelector('.verdict').textContent")
	for _, v := range views {
		show(t, p, v.id, v.drawn)
		var levels []int
		p.Eval(t, "[...document.querySelectorAll('h1, h2, h3, h4')].filter((e) => e.checkVisibility())"+
			".map((e) => +e.tagName[1])", &levels)
		for i, level := range levels {
			if i == 0 && level != 1 || i > 0 && level > levels[i-1]+1 {
				t.Errorf("%s: the headings have the levels %v", v.id, levels)
				break
			}
		}
	}

	// A table says how large it is, which row each is, and which one is chosen.
	show(t, p, "packets", ".detail .hex div")
	p.Eval(t, "[...document.querySelectorAll('.filterbar button')].find((b) => b.textContent === 'Clear').click()", nil)
	has(t, p, ".packets .counted", "881 of 881")
	p.Eval(t, "document.querySelector('.vtable').focus()", nil)
	p.Press(t, "End")
	p.Until(t, "document.querySelector('.vrows [aria-selected=true]')?.getAttribute('aria-rowindex') === '882'")
	var table struct {
		Rows, Columns, Cells string
		Active               bool
	}
	p.Eval(t, `(() => { const g = document.querySelector(".vtable"), r = document.querySelector(".vrows [aria-selected=true]");
		return { Rows: g.getAttribute("aria-rowcount"), Columns: g.getAttribute("aria-colcount"),
			Cells: String(r.children.length), Active: g.getAttribute("aria-activedescendant") === r.id }; })()`, &table)
	if table.Rows != "882" || table.Columns != "8" || table.Cells != "8" || !table.Active {
		t.Errorf("the table of 881 packets says %+v", table)
	}

	// The focus is seen wherever Tab goes, and comes back with its view.
	p.Eval(t, "document.activeElement.blur()", nil)
	seen := map[string]bool{}
	for range 40 {
		p.Press(t, "Tab")
		var bad, at string
		if p.Eval(t, outlined, &bad); bad != "" {
			t.Errorf("the focus does not show: %s", bad)
		}
		p.Eval(t, "document.activeElement.tagName + document.activeElement.className + document.activeElement.id", &at)
		seen[at] = true
	}
	if len(seen) < 10 {
		t.Errorf("Tab went to %v", seen)
	}
	show(t, p, "findings", ".explanation pre")
	link := ".explanation button.link"
	p.Eval(t, "document.querySelector('"+link+"').focus()", nil)
	p.Press(t, "Enter")
	p.Until(t, "document.querySelector('#view > .packets')?.contains(document.activeElement)")
	settled(t, p)
	p.Press(t, "8")
	p.Until(t, "document.activeElement === document.querySelector('"+link+"')")
	settled(t, p)
	complaints(t, b)
}

// At twice the size, in high contrast and without motion, everything is there and can be reached.
func TestZoomAndContrast(t *testing.T) {
	long(t)
	b, p := open(t, 1280, 900, false)
	drop(t, p, testenv.Capture(t, "u210_timeout_kill.client.pcap.gz"))
	for _, v := range views {
		show(t, p, v.id, v.drawn)
		p.Resize(t, 640, 400, false) // 1280 by 800 at 200 %
		reachable(t, p, v.id)
		p.Resize(t, 320, 640, false) // the narrowest of WCAG 1.4.10, Reflow
		reachable(t, p, v.id+", 320 pixels")
	}
	p.Call(t, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "forced-colors", "value": "active"}, {"name": "prefers-reduced-motion", "value": "reduce"},
	}}, nil)
	p.Eval(t, "document.getElementById('tab-packets').click()", nil)
	settled(t, p)
	for _, selector := range []string{".vrows [aria-selected=true]", "[role=tab][aria-selected=true]"} {
		var marked bool
		p.Eval(t, "(() => { const s = getComputedStyle(document.querySelector('"+selector+"'));"+
			"return s.outlineStyle === 'solid' || s.borderBottomStyle === 'solid' && parseFloat(s.borderBottomWidth) > 0; })()",
			&marked)
		if !marked {
			t.Errorf("in high contrast nothing marks %s", selector)
		}
	}
	var moving int
	p.Eval(t, "document.getAnimations().length", &moving)
	if moving > 0 {
		t.Errorf("%d things move", moving)
	}
	complaints(t, b)
}

// reachable reports what of a view lies beside the window, or below it where nothing scrolls to it.
func reachable(t *testing.T, p *chrome.Page, view string) {
	t.Helper()
	p.Eval(t, "new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))", nil)
	settled(t, p)
	var out string
	if p.Eval(t, wide, &out); out != "" {
		t.Errorf("%s: too wide: %s", view, out)
	}
	p.Eval(t, `[...document.querySelectorAll("#view button, #view input, #view select, #view .vtable")].filter((e) => {
		if (!e.checkVisibility()) return false;
		e.scrollIntoView({ block: "nearest" });
		const r = e.getBoundingClientRect();
		return r.top >= innerHeight - 4 || r.bottom <= 4 || r.height < 8;
	}).map((e) => e.outerHTML.slice(0, 90)).join("; ")`, &out)
	if out != "" {
		t.Errorf("%s: cannot be reached: %s", view, out)
	}
}

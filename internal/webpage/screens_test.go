package webpage

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/internal/chrome"
	"github.com/ackscope/ackscope/internal/testenv"
)

// views are the tabs of the page, and what stands in each once it is drawn.
var views = []struct{ id, drawn string }{
	{"overview", ".verdict"},
	{"flows", ".vrows [role=gridcell]"},
	{"packets", ".detail .hex div"},
	{"state", ".side .cell"},
	{"ladder", ".rung"},
	{"graphs", ".graph img"},
	{"messages", ".vrows [role=gridcell]"},
	{"findings", ".explanation pre"},
	{"replay", ".explanation dl"},
	{"report", ".saves button"},
}

// wide is a script whose value names what is wider than the window. What scrolls by itself may be.
const wide = `[...document.querySelectorAll("body *")].filter((e) =>
	e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .vtable, .hex, .wrong, nav, .skip, svg, pre"))
	.map((e) => e.tagName + "." + e.className).join(" ")`

// Nothing is wider than the window, from a telephone to a large screen, light and dark.
// ACKSCOPE_SHOTS is a folder that keeps the pictures.
func TestScreens(t *testing.T) {
	long(t)
	b, p := open(t, 1280, 900, false)
	drop(t, p, testenv.Capture(t, "u210_timeout_kill.client.pcap.gz"))
	for _, v := range views {
		show(t, p, v.id, v.drawn)
		for _, size := range [][2]int{{390, 844}, {1280, 900}, {3840, 2160}} {
			for _, dark := range []bool{false, true} {
				p.Resize(t, size[0], size[1], dark)
				p.Eval(t, "new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))", nil)
				var out string
				if p.Eval(t, wide, &out); out != "" {
					t.Errorf("%s, %d pixels: too wide: %s", v.id, size[0], out)
				}
				if dir := os.Getenv("ACKSCOPE_SHOTS"); dir != "" {
					theme := map[bool]string{false: "light", true: "dark"}[dark]
					path := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", v.id, size[0], theme))
					if err := os.WriteFile(path, p.Screenshot(t), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	complaints(t, b)
}

// show opens a tab, and selects what it lists first.
func show(t *testing.T, p *chrome.Page, id, drawn string) {
	t.Helper()
	p.Resize(t, 1280, 900, false)
	p.Eval(t, fmt.Sprintf("document.getElementById('tab-%s').click()", id), nil)
	if id == "packets" || id == "findings" || id == "replay" {
		p.Until(t, "document.querySelectorAll('.vrows [role=row]:not(.vempty)').length > 3")
		p.Eval(t, "document.querySelectorAll('.vrows [role=row]')[3].click()", nil)
	}
	p.Until(t, fmt.Sprintf("document.querySelector(%q)", "#view ."+id+" "+drawn))
	p.Eval(t, "window.ackscope.settled()", nil)
}

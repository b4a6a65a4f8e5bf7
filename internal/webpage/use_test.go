package webpage

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/chrome"
	"github.com/ackscope/ackscope/internal/testenv"
)

// textOf returns the text of the first element that a selector finds.
func textOf(t *testing.T, p *chrome.Page, selector string) (text string) {
	t.Helper()
	p.Eval(t, fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector), &text)
	return text
}

// settled waits until the page has nothing to do.
func settled(t *testing.T, p *chrome.Page) {
	t.Helper()
	p.Eval(t, "window.ackscope.settled()", nil)
}

// has waits until an element has a text that contains another.
func has(t *testing.T, p *chrome.Page, selector, text string) {
	t.Helper()
	p.Until(t, fmt.Sprintf("document.querySelector(%q)?.textContent.includes(%q)", selector, text))
}

// Each view keeps how far down it is, and a list has the room until one of its rows is selected.
func TestPlaces(t *testing.T) {
	testenv.Grid(t, "a browser")
	_, p := open(t, 1280, 700, false) // too low for the graphs or a state
	drop(t, p, testenv.Capture(t, "u210_falseack.server.pcapng.gz"))
	scroll := func(view string, to int) {
		t.Helper()
		p.Eval(t, "document.getElementById('tab-"+view+"').click()", nil)
		settled(t, p)
		p.Until(t, fmt.Sprintf("(m => (m.scrollTop = %d) === m.scrollTop)(document.querySelector('main'))", to))
	}
	at := func(view string, want int) {
		t.Helper()
		p.Eval(t, "document.getElementById('tab-"+view+"').click()", nil)
		settled(t, p)
		var got int
		p.Eval(t, "document.querySelector('main').scrollTop", &got)
		if got != want {
			t.Errorf("%s is %d pixels down, expected %d", view, got, want)
		}
	}
	scroll("graphs", 40)
	scroll("state", 90)
	at("overview", 0)
	at("graphs", 40)
	at("state", 90)

	p.Resize(t, 1280, 900, false)
	p.Eval(t, "document.getElementById('tab-findings').click()", nil)
	settled(t, p)
	p.Until(t, "document.querySelectorAll('.findings .vrows [role=row]').length === 20")
	p.Until(t, "(v => v.scrollHeight < v.clientHeight + 20)(document.querySelector('.findings .vtable'))")
}

// No heading of a list is cut, and the characters of a frame's bytes stand below each other.
func TestAligned(t *testing.T) {
	testenv.Grid(t, "a browser")
	_, p := open(t, 1280, 900, false)
	drop(t, p, testenv.Capture(t, "u210_falseack.server.pcapng.gz"))
	for _, view := range []string{"flows", "packets", "messages", "findings", "replay"} {
		p.Eval(t, "document.getElementById('tab-"+view+"').click()", nil)
		p.Until(t, "document.querySelector('."+view+" .vrows [role=row]')")
		settled(t, p)
		var cut string
		p.Eval(t, "[...document.querySelectorAll('.vhead [role=columnheader]')].filter(e => e.scrollWidth > e.clientWidth)"+
			".map(e => e.textContent).join(', ')", &cut)
		if cut != "" {
			t.Errorf("%s cuts the headings %s", view, cut)
		}
	}
	for _, width := range []int{1280, 390} {
		p.Resize(t, width, 900, false)
		p.Eval(t, "document.getElementById('tab-packets').click()", nil)
		p.Until(t, "document.querySelectorAll('.vrows [role=row]').length > 3")
		p.Eval(t, "document.querySelector('.vrows [role=row]').click()", nil)
		p.Until(t, "document.querySelectorAll('.hex .chars').length > 2")
		var apart float64
		p.Eval(t, "(x => Math.max(...x) - Math.min(...x))([...document.querySelectorAll('.hex .chars')]"+
			".map(e => e.getBoundingClientRect().left))", &apart)
		if apart > 2 { // half a letter
			t.Errorf("at %d pixels the characters begin up to %.1f pixels apart", width, apart)
		}
	}
}

// The page is used by keys alone: the views, the filter and its completion, a packet, its state.
func TestKeys(t *testing.T) {
	testenv.Grid(t, "a browser")
	b, p := open(t, 1280, 900, false)
	path := testenv.Capture(t, "oldreliable-loss20-reorder.client.pcap.gz")
	drop(t, p, path)
	for i, v := range views {
		p.Press(t, fmt.Sprint((i+1)%10))
		p.Until(t, "document.querySelector('#view > ."+v.id+"')")
	}
	settled(t, p)

	p.Press(t, "3")
	p.Until(t, "document.querySelectorAll('.vrows .vrow').length > 3")
	p.Press(t, "/")
	p.Type(t, "frame.numbr == 3")
	p.Press(t, "Escape", "Enter")
	has(t, p, "#filter-error", "frame.number")
	has(t, p, "#filter-error", "^") // below the place of the error
	p.Eval(t, "document.getElementById('filter').select()", nil)
	p.Type(t, "fate ==")
	p.Press(t, "Escape", "Enter")
	has(t, p, "#filter-error", "expected a field or a value, found the end")

	p.Eval(t, "document.getElementById('filter').select()", nil)
	p.Type(t, "fat")
	p.Until(t, "document.querySelectorAll('#proposals [role=option]').length > 0")
	p.Press(t, "ArrowDown", "Enter")
	p.Until(t, "document.getElementById('filter').value === 'fate'")
	p.Type(t, " == lost")
	p.Press(t, "Escape", "Enter")
	lost := strings.Count(cli(t, path, "packets", "--json", "-Y", "fate == lost"), "\n")
	has(t, p, ".packets .counted", fmt.Sprintf("%d of ", lost))
	if got := textOf(t, p, "#filter-error"); got != "" {
		t.Errorf("a filter that is right has the error %q", got)
	}
	settled(t, p)

	p.Eval(t, "document.querySelector('.vtable').focus()", nil)
	p.Press(t, "Home", "j", "j", "k")
	p.Until(t, "document.querySelector('.vrows [aria-selected=true]')?.getAttribute('aria-rowindex') === '3'")
	p.Until(t, "document.querySelector('.detail h2')?.textContent === "+
		"'Frame ' + document.querySelector('.vrows [aria-selected=true]').firstChild.textContent")
	frame := strings.TrimPrefix(textOf(t, p, ".detail h2"), "Frame ")
	settled(t, p)
	p.Press(t, "Enter")
	p.Until(t, "document.activeElement.classList.contains('detail')")
	for _, view := range []struct{ key, where string }{{"4", ".where"}, {"5", ".rung[aria-current] button"}} {
		p.Press(t, view.key)
		has(t, p, view.where, strings.TrimSpace(map[string]string{"4": "frame ", "5": ""}[view.key]+frame))
		settled(t, p)
		p.Press(t, "]")
		p.Until(t, fmt.Sprintf("!(document.querySelector(%q)?.textContent ?? %q).includes(%q)", view.where, frame, frame))
		settled(t, p)
		p.Press(t, "[")
		has(t, p, view.where, frame)
		settled(t, p)
	}

	// The list of keys takes the focus, and gives it back.
	p.Eval(t, "document.getElementById('tab-ladder').focus()", nil)
	p.Press(t, "?")
	p.Until(t, "document.querySelector('dialog[open]')?.contains(document.activeElement)")
	p.Press(t, "6", "Escape")
	p.Until(t, "!document.querySelector('dialog')")
	p.Until(t, "document.activeElement.id === 'tab-ladder'")
	p.Press(t, "ArrowRight")
	p.Until(t, "document.activeElement.id === 'tab-graphs' && document.querySelector('#view > .graphs')")
	settled(t, p)
	complaints(t, b)
}

// A link goes to its frame once its capture is dropped. Back goes to the view before. The slider
// goes over the whole capture. A link to what the capture does not have says so.
func TestLinks(t *testing.T) {
	testenv.Grid(t, "a browser")
	b, p := open(t, 1280, 900, false)
	name := "u210_timeout_kill.client.pcap.gz"
	p.Eval(t, "location.hash = 'file="+name+"&view=state&flow=1&frame=247'", nil)
	has(t, p, ".welcome", "Drop "+name)
	p.Choose(t, "input[type=file]", testenv.Capture(t, name))
	has(t, p, ".where", "frame 247 ")
	for _, share := range []int{0, 300, 700, 1000} {
		slide(t, p, testenv.Capture(t, name), share)
	}
	p.Press(t, "3")
	p.Until(t, "document.querySelector('#view > .packets')")
	settled(t, p)
	p.Eval(t, "history.back()", nil)
	has(t, p, ".where", "frame 881 ")
	settled(t, p)
	for _, x := range []struct{ hash, says string }{
		{"file=" + name + "&view=packets&flow=9&frame=99999", "frame 99999. The capture has 881 frames."},
		{"file=" + name + "&view=packets&flow=9", "flow 9. The capture has no such flow"},
		{"file=other.pcap&view=packets&flow=1", "The link is about other.pcap. This is " + name},
	} {
		p.Eval(t, "location.hash = '"+x.hash+"'", nil)
		has(t, p, ".notice:not([hidden])", x.says)
		settled(t, p)
	}
	complaints(t, b)
}

// slide moves the slider of State, and compares what both sides show with the command line.
func slide(t *testing.T, p *chrome.Page, path string, share int) {
	t.Helper()
	p.Eval(t, fmt.Sprintf(`(() => { const s = document.getElementById("scrub"); s.value = %d;
		s.dispatchEvent(new Event("input")); })()`, share), nil)
	settled(t, p)
	var frame int
	if _, err := fmt.Sscanf(textOf(t, p, ".where"), "frame %d", &frame); err != nil {
		t.Fatal(err)
	}
	if share == 0 && frame != 1 || share == 1000 && frame != 881 {
		t.Errorf("%d of 1000 is frame %d", share, frame)
	}
	want := lines(t, cli(t, path, "state", "--json", "--flow", "1", "--at", fmt.Sprint(frame)))
	for i, side := range []string{"a", "b"} {
		var text string
		p.Eval(t, fmt.Sprintf(`JSON.stringify([...document.querySelectorAll(".side.%s .window")].map((w) =>
			[...w.querySelectorAll(".cell")].map((c) => c.textContent).join("")))`, side), &text)
		var shown []string
		if err := json.Unmarshal([]byte(text), &shown); err != nil {
			t.Fatal(err)
		}
		windows, _ := want[i]["windows"].([]any)
		if len(shown) != len(windows) {
			t.Errorf("frame %d: %d windows of %s, expected %d", frame, len(shown), side, len(windows))
			continue
		}
		for n, w := range windows {
			cells, _ := w.(map[string]any)["cells"].(string)
			if shown[n] != cells {
				t.Errorf("frame %d, window %d of %s: %q, expected %q", frame, n, side, shown[n], cells)
			}
		}
	}
}

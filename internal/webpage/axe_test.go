package webpage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// axe runs the rules of axe-core over the page, and names what breaks them.
const axe = `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) =>
	v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.failureSummary).join("; ")))`

// axe-core finds no violation in any view, light or dark, large or small.
func TestAxe(t *testing.T) {
	testenv.Grid(t, "a browser")
	text, err := os.ReadFile(filepath.Join(withTools(t), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	b, p := open(t, 1280, 900, false)
	p.Eval(t, string(text)+"; 0", nil)
	check := func(view string) {
		t.Helper()
		var broken []string
		p.Eval(t, axe, &broken)
		for _, x := range broken {
			t.Errorf("%s: %s", view, x)
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
	complaints(t, b)
	capture := testenv.Capture(t, "u210_clean.client.pcap.gz")
	b, p = openFile(t, single(t, capture, capture), "")
	p.Eval(t, string(text)+"; 0", nil)
	check("one file with two captures")
	complaints(t, b)
}

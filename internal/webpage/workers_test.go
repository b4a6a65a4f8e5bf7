package webpage

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/internal/chrome"
	"github.com/ackscope/ackscope/internal/testenv"
)

// watched opens the page, and has it keep what it does with workers. The list window.workers has
// those that it made, and window.asked what it asked them for. Before it asks one for verdicts, a
// script runs as fail(worker, message).
func watched(t *testing.T, fail string) (*chrome.Browser, *chrome.Page) {
	t.Helper()
	return watchedAt(t, serve(t), fail)
}

// watchedAt does so with a page at an address.
func watchedAt(t *testing.T, url, fail string) (*chrome.Browser, *chrome.Page) {
	t.Helper()
	b := chrome.Start(t, testenv.Need(t, "chromium"))
	p := b.Open(t, "about:blank", 1280, 900, false)
	p.Call(t, "Page.addScriptToEvaluateOnNewDocument", map[string]string{"source": `
		window.workers = []; window.asked = [];
		const fail = (worker, message) => { ` + fail + ` };
		window.Worker = class extends Worker {
			constructor(url) { super(url); window.workers.push(this); }
			postMessage(message, given) {
				if (message.request) window.asked.push(message.request.op);
				if (message.request?.op === "verdicts") fail(this, message);
				super.postMessage(message, given);
			}
		};`}, nil)
	p.Call(t, "Page.navigate", map[string]string{"url": url}, nil)
	p.Until(t, "window.ackscope && document.readyState === 'complete'")
	p.Eval(t, "window.ackscope.ready()", nil)
	return b, p
}

// asked returns how often the page asked a worker for something.
func asked(t *testing.T, p *chrome.Page, op string) (n int) {
	t.Helper()
	p.Eval(t, fmt.Sprintf("window.asked.filter((op) => op === %q).length", op), &n)
	return n
}

// sameOverview compares the overview that stands in the page, and one more, with the command line.
func sameOverview(t *testing.T, p *chrome.Page, path string) {
	t.Helper()
	settled(t, p)
	var open bool
	p.Eval(t, `Promise.race([window.ackscope.count().then(() => true),
		new Promise((to) => setTimeout(to, 0, false))])`, &open)
	if !open {
		t.Error("the page has settled before it opened the packets")
	}
	want := cli(t, path, "overview", "--json")
	var o struct{ Sentence string }
	if err := json.Unmarshal([]byte(want), &o); err != nil || o.Sentence == "" {
		t.Fatalf("%v: %.300s", err, want)
	}
	if got := textOf(t, p, ".verdict"); got != o.Sentence {
		t.Errorf("the page says %q, expected %q", got, o.Sentence)
	}
	var got string
	if p.Eval(t, `window.ackscope.export("overview", "--json")`, &got); got != want {
		t.Errorf("page: %.600s\ncli:  %.600s", got, want)
	}
}

// Where the second worker fails, the first replays the capture too. The overview is complete, and
// that of the command line.
func TestSecondWorkerFails(t *testing.T) {
	testenv.Grid(t, "a browser")
	for name, fail := range map[string]string{
		"its replay fails": `message.request.args = ["no-such-capture.pcap"];`,
		"it ends":          `worker.dispatchEvent(new ErrorEvent("error", { message: "it has ended" }));`,
		"it says nonsense": `worker.onmessage({ data: { id: message.id, value: new Uint8Array([123, 34, 10]) } });`,
	} {
		t.Run(name, func(t *testing.T) {
			b, p := watched(t, fail)
			for i, capture := range []string{"plain-le-stalebug-loss98.client.pcap.gz", "u210_timeout_kill.client.pcap.gz"} {
				path := testenv.Capture(t, capture)
				drop(t, p, path)
				sameOverview(t, p, path)
				if n := asked(t, p, "verdicts"); n != 2*(i+1) {
					t.Errorf("the page asked for verdicts %d times, expected %d", n, 2*(i+1))
				}
			}
			complaints(t, b)
		})
	}
}

// Where the second worker ends without a word, or runs in circles, the first does all of the overview
// after a while. Another worker takes the place of the second one, and has the packets.
func TestSecondWorkerSilent(t *testing.T) {
	testenv.Grid(t, "a browser")
	for name, does := range map[string]string{"it ends": "close();", "it runs in circles": "for (;;);"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(assets(t))); err != nil {
				t.Fatal(err)
			}
			script := filepath.Join(dir, "worker.js")
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			text = fmt.Appendf(text, "const answers = onmessage;\n"+
				"onmessage = (e) => { if (e.data.request?.op === 'verdicts') { %s } else answers(e); };\n", does)
			if err := os.WriteFile(script, text, 0o600); err != nil {
				t.Fatal(err)
			}
			b, p := watchedAt(t, serveFrom(t, dir), "")
			path := testenv.Capture(t, "u210_timeout_kill.client.pcap.gz")
			drop(t, p, path)
			sameOverview(t, p, path)
			samePackets(t, p, path)
			var workers int
			p.Eval(t, "window.workers.length", &workers)
			if n := asked(t, p, "verdicts"); n != 2 || workers != 2+n {
				t.Errorf("the page asked for verdicts %d times, and made %d workers, expected 2 and 4", n, workers)
			}
			complaints(t, b)
		})
	}
}

// The reading is cancelled while both workers read, and begins again. What stands then is the whole
// overview.
func TestCancelWhileBothRead(t *testing.T) {
	testenv.Grid(t, "a browser")
	large := filepath.Join(t.TempDir(), "large.pcapng")
	c := exec.Command(testenv.Ackscope(t), "simulate", "--protocol", "gaffer:reliable", "--seed", "3", "--loss", "3%",
		"--rate", "60", "--duration", "1700s", "--tap", "a", "-w", large)
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	b, p := watched(t, "window.second = worker;")
	p.Choose(t, "input[type=file]", large)
	p.Until(t, "window.second && document.querySelector('progress:not([hidden])')?.value > 0")
	p.Eval(t, "[...document.querySelectorAll('#status button')].find((b) => b.textContent === 'Cancel').click()", nil)
	has(t, p, "#view", "Reading was cancelled")
	if n, m := asked(t, p, "overview"), asked(t, p, "verdicts"); n != 1 || m != 1 {
		t.Errorf("the page had asked for %d overviews and %d times for verdicts, expected one each", n, m)
	}
	var workers int
	if p.Eval(t, "window.workers.length", &workers); workers != 4 {
		t.Errorf("the page made %d workers, expected two for each reading", workers)
	}
	p.Eval(t, "document.querySelector('#view .problem button').click()", nil)
	p.Until(t, "document.querySelector('.verdict')")
	sameOverview(t, p, large)
	complaints(t, b)
}

// A capture that is dropped while a worker warms up is read like any other, and ends the warm-up.
func TestDropWhileWarming(t *testing.T) {
	testenv.Grid(t, "a browser")
	b, p := watched(t, "")
	p.Until(t, "window.asked.includes('warm')")
	var over bool
	p.Eval(t, `Promise.race([window.ackscope.warm().then(() => true), Promise.resolve(false)])`, &over)
	if over {
		t.Error("the warm-up was over before the drop")
	}
	path := testenv.Capture(t, "u210_timeout_kill.client.pcap.gz")
	drop(t, p, path)
	p.Eval(t, "window.ackscope.warm()", nil)
	rounds := asked(t, p, "warm")
	sameOverview(t, p, path)
	samePackets(t, p, path)
	if n := asked(t, p, "warm"); n != rounds || n == 0 {
		t.Errorf("%d rounds of the warm-up, and %d after the drop", rounds, n)
	}
	complaints(t, b)
}

package webpage

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/chrome"
	"github.com/ackscope/ackscope/internal/testenv"
)

// single writes a report that is one file, and returns its path.
func single(t *testing.T, args ...string) string {
	t.Helper()
	page := filepath.Join(t.TempDir(), "match.html")
	testenv.Output(t, testenv.Ackscope(t), append([]string{
		"report", "--interactive", "--assets", assets(t), "-o", page,
	}, args...)...)
	return page
}

// openFile opens a page from the disk in a browser of its own, and waits for its overview.
func openFile(t *testing.T, path, hash string) (*chrome.Browser, *chrome.Page) {
	t.Helper()
	b := chrome.Start(t, testenv.Need(t, "chromium"))
	begun := time.Now()
	p := b.Open(t, "file://"+path+hash, 1280, 900, false)
	p.Until(t, "document.querySelector('.host')")
	if hash == "" {
		p.Until(t, "document.querySelector('.verdict, .host pre')")
		if info, err := os.Stat(path); err == nil {
			t.Logf("%d bytes, %v until the overview", info.Size(), time.Since(begun).Round(time.Millisecond))
		}
	}
	return b, p
}

// strangers returns what a page of one file asked for, beside itself and its parts.
func strangers(t *testing.T, b *chrome.Browser, path string) (list []string) {
	t.Helper()
	asked := b.Events("Network.requestWillBeSent")
	if len(asked) == 0 {
		t.Error("the browser did not even report the request of the page itself")
	}
	for _, e := range asked {
		var x struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		if err := json.Unmarshal(e.Params, &x); err != nil {
			t.Fatal(err)
		}
		url := x.Request.URL
		if url != "file://"+path && !strings.HasPrefix(url, "blob:") && !strings.HasPrefix(url, "data:") {
			list = append(list, url)
		}
	}
	return list
}

// A report of one file opens from the disk, asks for nothing, and complains of nothing. Its figures
// and states are those of the command line.
func TestSingleEqualsCommandLine(t *testing.T) {
	testenv.Grid(t, "a browser")
	for i, capture := range captures(t) {
		if i%min(perProtocol, 10) != 3 {
			continue // one or two of each protocol: TestPageEqualsCommandLine has them all
		}
		t.Run(filepath.Base(capture), func(t *testing.T) {
			page := single(t, capture)
			b, p := openFile(t, page, "")
			for _, words := range [][]string{{"overview", "--json"}, {"flows", "--json"}, {"replay", "--json"}} {
				var got string
				p.Eval(t, fmt.Sprintf("window.ackscope.export(%s)", strings.Trim(toJSON(t, words), "[]")), &got)
				if want := cli(t, capture, words...); got != want {
					t.Errorf("%q differs\npage: %.600s\ncli:  %.600s", words, got, want)
				}
			}
			samePackets(t, p, capture)
			sameState(t, p, capture)
			if list := strangers(t, b, page); len(list) > 0 {
				t.Errorf("the page asked for %q", list)
			}
			complaints(t, b)
		})
	}
}

// The policy of the one file allows no connection, and no script but its own.
func TestSingleConnectsToNothing(t *testing.T) {
	testenv.Grid(t, "a browser")
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(s.Close)
	_, p := openFile(t, single(t, testenv.Capture(t, "u210_clean.client.pcap.gz")), "")
	for _, try := range []string{
		`fetch(URL).then(() => "asked", () => "refused")`,
		`new Promise((r) => { const i = new Image(); i.onload = () => r("asked"); i.onerror = () => r("refused"); i.src = URL; })`,
		`(() => { try { new Worker(URL); return "asked"; } catch { return "refused"; } })()`,
		`(() => { try { document.body.innerHTML = "<b>"; return "parsed"; } catch { return "refused"; } })()`,
		`(() => { const s = document.createElement("script"); try { s.textContent = "window.owned = 1"; } catch { }
			document.body.append(s); return window.owned ? "ran" : "refused"; })()`,
		`new Promise((r) => { const w = new WebSocket("ws" + URL.slice(4)); w.onopen = () => r("asked"); w.onerror = () => r("refused"); })
			.catch(() => "refused")`,
	} {
		var got string
		if p.Eval(t, strings.ReplaceAll(try, "URL", toJSON(t, s.URL+"/")), &got); got != "refused" {
			t.Errorf("%s: %s", try, got)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the page asked a server %d times", n)
	}
}

// The first capture is open, a choice has the others, and a link leads to a frame of any. Names of
// captures are text, whatever they are.
func TestSingleOfSeveral(t *testing.T) {
	long(t)
	dir := t.TempDir()
	named := filepath.Join(dir, `"><img src=x onerror="window.owned=1"><!--<script>.pcap.gz`)
	text, err := os.ReadFile(testenv.Capture(t, "reliable-burst.client.pcap.gz"))
	if err == nil {
		err = os.WriteFile(named, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	other := testenv.Capture(t, "u210_clean.client.pcap.gz")
	page := single(t, named, other, other)
	b, p := openFile(t, page, "")
	var got struct {
		Title   string
		Owned   bool
		Options []string
	}
	look := `({ Title: document.title, Owned: !!window.owned, Options: [...document.querySelectorAll("#capture option")].map((o) => o.text) })`
	if p.Eval(t, look, &got); got.Owned || !strings.HasPrefix(got.Title, filepath.Base(named)) {
		t.Errorf("%+v", got)
	}
	want := []string{filepath.Base(named), "u210_clean.client.pcap.gz", "u210_clean (2).client.pcap.gz"}
	if toJSON(t, got.Options) != toJSON(t, want) {
		t.Errorf("the page offers %q, expected %q", got.Options, want)
	}
	const second = `(() => { const s = document.querySelector("#capture select"); s.selectedIndex = 1;
		s.dispatchEvent(new Event("change")); })()`
	p.Eval(t, second, nil)
	p.Until(t, `document.title.startsWith("u210_clean.client") && document.querySelector(".verdict")`)
	// A dropped file takes the place of the one inside, also if it has the same name, until that is
	// chosen again.
	same := filepath.Join(dir, "u210_clean.client.pcap.gz")
	if err := os.WriteFile(same, text, 0o600); err != nil {
		t.Fatal(err)
	}
	verdict := `document.querySelector(".verdict")?.textContent`
	var before, dropped string
	p.Eval(t, verdict, &before)
	p.Eval(t, `document.querySelector(".host").remove()`, nil)
	p.Choose(t, "input[type=file]", same)
	p.Until(t, `document.querySelector(".verdict")`)
	p.Eval(t, verdict, &dropped)
	p.Eval(t, second, nil)
	p.Until(t, verdict+" === "+toJSON(t, before))
	if before == dropped {
		t.Errorf("both captures are said to be %s", before)
	}
	p.Resize(t, 390, 844, false)
	var out string
	if p.Eval(t, wide, &out); out != "" {
		t.Errorf("too wide: %s", out)
	}
	complaints(t, b)
	for hash, title := range map[string]string{
		"#view=packets&frame=12":                                want[0],
		"#file=u210_clean.client.pcap.gz&view=packets&frame=12": want[1],
	} {
		_, p := openFile(t, page, hash)
		p.Until(t, `document.querySelector("#view .packets .detail .hex div")`)
		var at string
		p.Eval(t, "document.title + location.hash", &at)
		if !strings.HasPrefix(at, title) || !strings.HasSuffix(at, "&frame=12") {
			t.Errorf("%s led to %s", hash, at)
		}
	}
}

// What the command was given beside the capture is in the page too: its files and its flags.
func TestSingleBeside(t *testing.T) {
	testenv.Grid(t, "a browser")
	folder, log := t.TempDir(), filepath.Join(testenv.Module(t), "testdata", "gamelog")
	capture, schema := filepath.Join(folder, "pause.client.pcap.gz"), testenv.Capture(t, "riptide-messages.yaml")
	for _, path := range []string{filepath.Join(log, "pause.client.pcap.gz"), filepath.Join(log, "client.jsonl"), schema} {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(path)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	assets(t) // it needs the module's folder, and so does the program
	testenv.Ackscope(t)
	t.Chdir(folder)
	flags := []string{"--vantage", "between", "--set", "rtt=1ms", "--schema", filepath.Base(schema)}
	b, p := openFile(t, single(t, append(flags, "--log", "client=client.jsonl", capture)...), "")
	for _, words := range [][]string{{"overview", "--json", "--log", "client=client.jsonl"}, {"flows", "--json"}} {
		var got string
		p.Eval(t, fmt.Sprintf("window.ackscope.export(%s)", strings.Trim(toJSON(t, words), "[]")), &got)
		if want := cli(t, capture, slices.Concat(words, flags)...); got != want {
			t.Errorf("%q differs\npage: %.600s\ncli:  %.600s", words, got, want)
		}
	}
	var chips string
	p.Eval(t, `[...document.querySelectorAll(".chip")].map((c) => c.firstChild.data).join(", ")`, &chips)
	if want := "schema: riptide-messages.yaml, log: client=client.jsonl"; chips != want {
		t.Errorf("the page names %q, expected %q", chips, want)
	}
	complaints(t, b)
}

// The page decrypts with the keys if they were asked for, and has none otherwise.
func TestSingleKeys(t *testing.T) {
	long(t)
	capture, keys := testenv.Capture(t, "yojimbo-wrong-key.client.pcap.gz"), filepath.Join(t.TempDir(), "keys.yaml")
	log := testenv.Unpacked(t, testenv.Capture(t, "yojimbo-wrong-key.truth.jsonl.gz"))
	of := func(name string) string {
		m := regexp.MustCompile(`"endpoint":"server".*"` + name + `":"([0-9a-f]+)"`).FindSubmatch(log)
		if m == nil {
			t.Fatalf("the log has no %s", name)
		}
		return string(m[1])
	}
	text := "servers: [{protocol_id: 0x" + of("protocol_id") + ", private_key: " + of("private_key") + "}]\n"
	if err := os.WriteFile(keys, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, closed := cli(t, capture, "flows", "--json", "--keys", keys), cli(t, capture, "flows", "--json")
	if opened == closed {
		t.Fatal("the keys open nothing")
	}
	for _, c := range []struct {
		flags []string
		want  string
	}{{[]string{"--with-keys"}, opened}, {nil, closed}} {
		_, p := openFile(t, single(t, append(c.flags, "--keys", keys, capture)...), "")
		var got string
		if p.Eval(t, `window.ackscope.export("flows", "--json")`, &got); got != c.want {
			t.Errorf("%q\npage: %.600s\ncli:  %.600s", c.flags, got, c.want)
		}
	}
}

// The page saves what the command line writes, also from the disk.
func TestSingleSaves(t *testing.T) {
	long(t)
	capture, folder := testenv.Capture(t, "u210_clean.client.pcap.gz"), t.TempDir()
	b, p := openFile(t, single(t, capture), "")
	b.Call(t, "", "Browser.setDownloadBehavior", map[string]string{"behavior": "allow", "downloadPath": folder}, nil)
	p.Eval(t, "document.getElementById('tab-report').click()", nil)
	p.Eval(t, "document.querySelectorAll('.saves button')[1].click()", nil)
	p.Until(t, `document.getElementById("status").textContent.includes("was made")`)
	want := cli(t, capture, "report", "--format", "markdown")
	var got []byte
	for deadline := time.Now().Add(time.Minute); string(got) != want && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
		got, _ = os.ReadFile(filepath.Join(folder, "u210_clean.client-report.md")) // until it is there
	}
	if string(got) != want {
		t.Errorf("saved: %.300s\ncli: %.300s", got, want)
	}
	complaints(t, b)
}

// With a filter, the page has the packets that pass, as they were.
func TestSingleOfFlow(t *testing.T) {
	long(t)
	capture := testenv.Capture(t, "upy_timeout.client.pcap.gz")
	page, part := single(t, "-Y", "flow == 2", capture), filepath.Join(t.TempDir(), "part.pcapng")
	cli(t, capture, "packets", "-q", "-Y", "flow == 2", "-w", part)
	want, err := os.ReadFile(part)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`id="inside-0">([^<]*)<`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the page has no capture")
	}
	r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(m[1])))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) || len(want) < 1000 {
		t.Errorf("the page has %d bytes of flow 2, and -w writes %d: %v", len(got), len(want), err)
	}
}

// unpacking counts what the page's own thread decompresses and compiles, and the characters of base64
// that it decodes. Workers have other globals.
const unpacking = `window.unpacked = { streams: 0, programs: 0, characters: 0 };
	window.DecompressionStream = class extends DecompressionStream { constructor(f) { super(f); unpacked.streams++; } };
	for (const name of ["compile", "compileStreaming", "instantiate", "instantiateStreaming", "Module"]) {
		WebAssembly[name] = () => { unpacked.programs++; throw new Error(name); };
	}
	const decode = window.atob;
	window.atob = (text) => { unpacked.characters += text.length; return decode(text); };`

// The page's thread decodes the worker's script and the list of files. Workers do the rest.
func TestSingleUnpacksAside(t *testing.T) {
	testenv.Grid(t, "a browser")
	page := single(t, testenv.Capture(t, "u210_timeout_kill.client.pcap.gz"))
	p := chrome.Start(t, testenv.Need(t, "chromium")).Open(t, "about:blank", 1280, 900, false)
	p.Call(t, "Page.addScriptToEvaluateOnNewDocument", map[string]string{"source": unpacking}, nil)
	p.Call(t, "Page.navigate", map[string]string{"url": "file://" + page}, nil)
	p.Until(t, "document.querySelector('.verdict')")
	var did struct{ Streams, Programs, Characters int }
	p.Eval(t, "window.unpacked", &did)
	if did.Streams != 0 || did.Programs != 0 || did.Characters == 0 || did.Characters > 100_000 {
		t.Errorf("the page's thread did %+v, expected a worker's script and a list", did)
	}
}

// The page's thread is never busy for long while the page starts: twice, since the machine may be
// busy with something else. Every view is drawn under the policy of the one file. Without scripts
// the page says what it needs.
func TestSingleStarts(t *testing.T) {
	testenv.Grid(t, "a browser")
	page := single(t, testenv.Capture(t, "u210_timeout_kill.client.pcap.gz"))
	var b *chrome.Browser
	var p *chrome.Page
	frozen := math.Inf(1)
	for range 2 {
		var busy float64
		b, p = openFile(t, page, "")
		p.Eval(t, `new Promise((r) => new PerformanceObserver((l) => r(Math.max(...l.getEntries().map((e) => e.duration))))
			.observe({ type: "longtask", buffered: true }) || setTimeout(() => r(0), 500))`, &busy)
		t.Logf("busy for %.0f ms at most", busy)
		if frozen = min(frozen, busy); frozen <= freeze {
			break
		}
	}
	if frozen > freeze {
		t.Errorf("the page froze for %.0f ms while it started", frozen)
	}
	for _, v := range views {
		show(t, p, v.id, v.drawn)
		for _, width := range []int{390, 1280} {
			for _, dark := range []bool{false, true} {
				p.Resize(t, width, 900, dark)
				p.Eval(t, "new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))", nil)
				shot(t, p, fmt.Sprintf("single-%s-%d-%v.png", v.id, width, dark))
			}
		}
	}
	complaints(t, b)
	p.Call(t, "Emulation.setScriptExecutionDisabled", map[string]bool{"value": true}, nil)
	p.Call(t, "Page.reload", nil, nil)
	p.Until(t, `document.querySelector("noscript")?.getBoundingClientRect().height > 0`)
	shot(t, p, "single-noscript.png")
}

// A browser that cannot unpack the page says so.
func TestSingleInOldBrowser(t *testing.T) {
	long(t)
	page := single(t, testenv.Capture(t, "u210_clean.client.pcap.gz"))
	p := chrome.Start(t, testenv.Need(t, "chromium")).Open(t, "about:blank", 390, 844, false)
	p.Call(t, "Page.addScriptToEvaluateOnNewDocument", map[string]string{
		"source": "delete globalThis.DecompressionStream",
	}, nil)
	p.Call(t, "Page.navigate", map[string]string{"url": "file://" + page}, nil)
	p.Until(t, `document.getElementById("status")?.textContent.includes("this browser cannot unpack the page")`)
}

// shot keeps a picture of the page, if ACKSCOPE_SHOTS is a folder.
func shot(t *testing.T, p *chrome.Page, name string) {
	t.Helper()
	dir := os.Getenv("ACKSCOPE_SHOTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name), p.Screenshot(t), 0o600); err != nil {
		t.Fatal(err)
	}
}

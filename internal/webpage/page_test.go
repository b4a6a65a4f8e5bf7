package webpage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/ackscope/ackscope/cli/serving"
	"github.com/ackscope/ackscope/internal/chrome"
	"github.com/ackscope/ackscope/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Main(m, func() {
		for _, dir := range []string{built.dir, tools.dir} {
			if dir != "" {
				_ = os.RemoveAll(dir) // it is below the folder for temporary files
			}
		}
	})
}

// built is the folder of the page: its committed files, with the analysis built for this test.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// assets returns the folder of the page.
func assets(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		built.dir, built.err = os.MkdirTemp("", "ackscope-page") //nolint:usetesting // several tests share it
		if built.err != nil {
			return
		}
		built.err = errorOf(
			os.CopyFS(built.dir, os.DirFS(filepath.Join(testenv.Module(t), "web", "dist"))),
			build(t, filepath.Join(built.dir, "ackscope.wasm")),
			loader(filepath.Join(built.dir, "wasm_exec.js")),
		)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

func errorOf(list ...error) error {
	for _, err := range list {
		if err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}

// build builds the analysis as `make web` does.
func build(t *testing.T, to string) error {
	t.Helper()
	c := exec.Command(filepath.Join(testenv.Module(t), "scripts", "pagewasm"), to)
	if said, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

// The analysis is built anew where an earlier build lies: `make web` can run again.
func TestBuildsAgain(t *testing.T) {
	testenv.Grid(t, "a build of the page")
	to := filepath.Join(t.TempDir(), "ackscope.wasm")
	for range 2 {
		if err := build(t, to); err != nil {
			t.Fatal(err)
		}
	}
}

// loader copies the loader of the Go distribution.
func loader(to string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// serve serves the page, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	return serveFrom(t, assets(t))
}

// serveFrom serves the page that is in a folder.
func serveFrom(t *testing.T, dir string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	//nolint:gosec // the test's own browser is no stranger
	s := &http.Server{Handler: serving.Handler(os.DirFS(dir), l.Addr().String())}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String() + "/"
}

// open serves the page and opens it in a browser.
func open(t *testing.T, width, height int, dark bool) (*chrome.Browser, *chrome.Page) {
	t.Helper()
	chromium := testenv.Need(t, "chromium")
	url := serve(t)
	b := chrome.Start(t, chromium)
	p := b.Open(t, url, width, height, dark)
	complaints(t, b)
	p.Eval(t, "window.ackscope.ready()", nil)
	return b, p
}

// drop gives files to the page, the capture last, and waits until the overview stands.
func drop(t *testing.T, p *chrome.Page, paths ...string) {
	t.Helper()
	p.Choose(t, "input[type=file]", paths...)
	name := toJSON(t, filepath.Base(paths[len(paths)-1]))
	p.Until(t, "document.title.startsWith("+name+") && document.querySelector('.verdict, .host pre')")
}

// cli runs the program, and returns what it prints: the complaint if it prints nothing else.
func cli(t *testing.T, capture string, args ...string) string {
	t.Helper()
	c := exec.Command(testenv.Ackscope(t), append(args, "--", filepath.Base(capture))...)
	c.Dir = filepath.Dir(capture)
	var out, complaints bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaints
	_ = c.Run() // some findings are a failure
	if out.Len() == 0 {
		return complaints.String()
	}
	return out.String()
}

// The figures of the page are those of the command line, for captures of each protocol. The page
// and its workers ask for nothing after they have loaded, and complain of nothing.
func TestPageEqualsCommandLine(t *testing.T) {
	testenv.Grid(t, "a browser")
	b, p := open(t, 1280, 900, false)
	asked := len(b.Events("Network.requestWillBeSent"))
	if asked < 3 {
		t.Fatalf("the browser reported %d requests of the page's own files", asked)
	}
	for _, path := range captures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			drop(t, p, path)
			for _, words := range [][]string{
				{"overview", "--json"},
				{"flows", "--json"},
				{"findings", "--json"},
				{"messages", "--json"},
				{"replay", "--json"},
				{"ledger", "--json"},
			} {
				var got string
				p.Eval(t, fmt.Sprintf("window.ackscope.export(%s)", strings.Trim(toJSON(t, words), "[]")), &got)
				if want := cli(t, path, words...); got != want {
					t.Errorf("%q differs\npage: %.600s\ncli:  %.600s", words, got, want)
				}
			}
			samePackets(t, p, path)
			sameState(t, p, path)
		})
	}
	if after := b.Events("Network.requestWillBeSent"); len(after) != asked {
		t.Errorf("the page asked for %d more after it had loaded: %s", len(after)-asked, after[asked].Params)
	}
	complaints(t, b)
}

// complaints reports what the console of the page has.
func complaints(t *testing.T, b *chrome.Browser) {
	t.Helper()
	for _, e := range b.Events("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded") {
		t.Errorf("%s: %.800s", e.Method, e.Params)
	}
}

// whole says that every test runs, over all its captures: make page. The others of them run in make
// full, which has minutes for this package.
var whole = os.Getenv("ACKSCOPE_PAGE") != ""

// perProtocol is how many captures of each protocol the page is compared over.
var perProtocol = map[bool]int{true: 20, false: 4}[whole]

// long skips a test that runs in make page only.
func long(t *testing.T) {
	t.Helper()
	if !whole {
		t.Skip("make page runs it")
	}
}

// riptideName matches the names of Riptide's captures: those over UDP, TCP and of Pytide.
var riptideName = regexp.MustCompile(`^[ut](py)?\d`)

// captures returns captures of every protocol, spread over those of testdata. SRDP has no endpoint
// outside of this repository, so its captures are simulated.
func captures(t *testing.T) (list []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "*.pcap*"))
	if err != nil {
		t.Fatal(err)
	}
	var byProtocol [2][]string
	for _, path := range all {
		of := 0
		if riptideName.MatchString(filepath.Base(path)) {
			of = 1
		}
		byProtocol[of] = append(byProtocol[of], path)
	}
	for _, paths := range byProtocol {
		if len(paths) < perProtocol {
			t.Fatalf("%d captures of a protocol", len(paths))
		}
		for i := range perProtocol {
			list = append(list, paths[i*len(paths)/perProtocol])
		}
	}
	dir := t.TempDir()
	for seed := 1; seed <= perProtocol; seed++ {
		path := filepath.Join(dir, fmt.Sprintf("srdp-%d.pcapng", seed))
		testenv.Output(t, testenv.Ackscope(t), "simulate", "--protocol", "srdp", "--seed", fmt.Sprint(seed), "--loss",
			fmt.Sprintf("%d%%", seed), "--delay", "30ms", "--duration", "5s", "--tap", "a", "-w", path)
		list = append(list, path)
	}
	return list
}

// samePackets compares the rows of the page with `packets --json`.
func samePackets(t *testing.T, p *chrome.Page, path string) {
	t.Helper()
	want := lines(t, cli(t, path, "packets", "--json"))
	var text string
	p.Eval(t, "window.ackscope.packets(0, 1e9)", &text)
	var rows []struct {
		Packets []map[string]any `json:"packets"`
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	for _, row := range rows {
		got = append(got, row.Packets...)
	}
	if len(got) != len(want) {
		t.Errorf("%d packets, expected %d", len(got), len(want))
		return
	}
	wrong := 0
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			if wrong++; wrong <= 3 {
				t.Errorf("packet %d:\npage: %s\ncli:  %s", i, toJSON(t, got[i]), toJSON(t, want[i]))
			}
		}
	}
	if wrong > 3 {
		t.Errorf("%d of %d packets differ", wrong, len(want))
	}
}

// sameState compares both sides at some frames with `state --json`.
func sameState(t *testing.T, p *chrome.Page, path string) {
	t.Helper()
	first := lines(t, cli(t, path, "flows", "--json"))
	frames, _ := first[0]["packets_a"].(float64)
	if first[0]["vantage"] == nil || frames == 0 {
		return // no state to show
	}
	for _, frame := range []int{int(frames), 1 + int(frames)/4, 1 + int(frames)/2} {
		out := cli(t, path, "state", "--json", "--flow", "1", "--at", fmt.Sprint(frame))
		var text string
		p.Eval(t, fmt.Sprintf("window.ackscope.state(1, %d)", frame), &text)
		var got []map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if want := lines(t, out); !reflect.DeepEqual(got, want) {
			t.Errorf("state at %d differs\npage: %.800s\ncli:  %.800s", frame, text, out)
		}
	}
}

func lines(t *testing.T, text string) (list []map[string]any) {
	t.Helper()
	s := bufio.NewScanner(strings.NewReader(text))
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var x map[string]any
		if err := json.Unmarshal(s.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package webpage

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ackscope/ackscope/internal/chrome"
	"github.com/ackscope/ackscope/internal/testenv"
)

// give gives files to the page, and waits until it has read what is shown of them.
func give(t *testing.T, p *chrome.Page, paths ...string) {
	t.Helper()
	p.Eval(t, "window.given = window.ackscope.generation()", nil)
	p.Choose(t, "input[type=file]", paths...)
	p.Until(t, "window.ackscope.generation() !== window.given")
	settled(t, p)
}

// written writes a file of the test.
func written(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// privateKey returns the key of the server of a recorded run, as a key file.
func privateKey(t *testing.T, run string) string {
	t.Helper()
	for line := range bytes.Lines(testenv.Unpacked(t, testenv.Capture(t, run+".truth.jsonl.gz"))) {
		var l struct {
			Event      string `json:"event"`
			PrivateKey string `json:"private_key"`
			ProtocolID string `json:"protocol_id"`
		}
		if err := json.Unmarshal(line, &l); err == nil && l.Event == "config" && l.PrivateKey != "" {
			return fmt.Sprintf("servers:\n  - protocol_id: 0x%s\n    private_key: %s\n", l.ProtocolID, l.PrivateKey)
		}
	}
	t.Fatal("the log has no key")
	return ""
}

// Schemas, keys, profiles, thresholds and logs that are dropped serve the capture, as their flags
// do at the command line. A wrong one says what is wrong, and can be removed.
func TestSupport(t *testing.T) {
	testenv.Grid(t, "a browser")
	b, p := open(t, 1280, 900, false)
	dir := t.TempDir()
	copied := func(from string) string { return written(t, dir, filepath.Base(from), read(t, from)) }
	run := "yojimbo-wrong-key"
	module := testenv.Module(t)
	game := filepath.Join(dir, "game.pcapng")
	example := copied(filepath.Join(module, "docs", "gaffer-example.yaml"))
	testenv.Output(t, testenv.Ackscope(t), "simulate", "--profiles", example, "--protocol", "gaffer:example", "--messages",
		"20", "--duration", "3s", "-w", game)
	for _, x := range []struct {
		kind, support, capture string
		command                []string
		has                    string // what the answer has by the support only
	}{
		{
			"keys", written(t, dir, "keys.yaml", []byte(privateKey(t, run))), copied(testenv.Capture(t, run+".client.pcap.gz")),
			[]string{"packets", "--json"},
			`"yojimbo"`,
		},
		{
			"schema", copied(testenv.Capture(t, "riptide-messages.yaml")),
			copied(testenv.Capture(t, "u210_timeout_kill.client.pcap.gz")),
			[]string{"messages", "--json"},
			`"name":"small"`,
		},
		{"profiles", example, game, []string{"messages", "--json"}, `"Move"`},
		{
			"thresholds", written(t, dir, "limits.yaml", []byte("rtt: 1ms\n")),
			copied(testenv.Capture(t, "u210_clean.client.pcap.gz")),
			[]string{"findings", "--json"},
			`"steady-rtt"`,
		},
		{
			"log", copied(filepath.Join(module, "testdata", "gamelog", "client.jsonl")),
			copied(filepath.Join(module, "testdata", "gamelog", "pause.client.pcap.gz")), nil, "",
		},
	} {
		t.Run(x.kind, func(t *testing.T) {
			give(t, p, x.support, x.capture)
			name := filepath.Base(x.support)
			has(t, p, ".chip", x.kind+": "+name)
			if x.command == nil {
				logged(t, p)
				return
			}
			var got string
			p.Eval(t, fmt.Sprintf("window.ackscope.export(%s)", strings.Trim(toJSON(t, x.command), "[]")), &got)
			want := cli(t, x.capture, append(x.command, "--"+x.kind, name)...)
			if got != want || !strings.Contains(got, x.has) {
				t.Errorf("%q:\npage: %.400s\ncli:  %.400s", x.command, got, want)
			}
			p.Eval(t, "document.querySelector('.chip button').click()", nil)
			settled(t, p)
			p.Eval(t, fmt.Sprintf("window.ackscope.export(%s)", strings.Trim(toJSON(t, x.command), "[]")), &got)
			if strings.Contains(got, x.has) {
				t.Errorf("without %s the page still has %s", name, x.has)
			}
		})
	}

	give(t, p, written(t, dir, "bad.yaml", []byte("messages:\n  1: [bad\n")))
	has(t, p, "#view .problem", "bad.yaml: line 2: this is not YAML")
	p.Eval(t, "document.querySelector('.chip button').click()", nil)
	p.Eval(t, "document.getElementById('tab-overview').click()", nil)
	p.Until(t, "document.querySelector('.verdict')")
	p.Choose(t, "input[type=file]", written(t, dir, "other.yaml", []byte("colour: red\n")))
	has(t, p, ".notice:not([hidden])", "other.yaml: expected a capture, keys")
	settled(t, p)
	complaints(t, b)
}

// logged looks at what only a game's log can tell: how long its frames took. Without the log, the
// page says what is missing.
func logged(t *testing.T, p *chrome.Page) {
	t.Helper()
	chosen := `(() => { document.getElementById("tab-graphs").click(); const s = document.getElementById("graph-kind");
		s.value = "frames"; s.dispatchEvent(new Event("change")); })()`
	p.Eval(t, chosen, nil)
	p.Until(t, "document.querySelector('.graph img')?.alt.startsWith('Frames of the game')")
	p.Eval(t, "document.querySelector('.chip button').click()", nil)
	settled(t, p)
	p.Eval(t, chosen, nil)
	has(t, p, ".graph", "--log")
	settled(t, p)
}

// read returns the content of a file.
func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What cannot be read says so in every view. A capture that is cut short is read as far as it goes.
// Compressed captures are read. Of several that are dropped, each is read for itself.
func TestCaptures(t *testing.T) {
	testenv.Grid(t, "a browser")
	b, p := open(t, 1280, 900, false)
	dir := t.TempDir()
	plain := testenv.Unpacked(t, testenv.Capture(t, "reliable-loss40.client.pcapng.gz"))

	give(t, p, written(t, dir, "letter.pcap", []byte("Dear reader, this is no capture.")))
	for _, v := range views[:len(views)-1] {
		p.Eval(t, "document.getElementById('tab-"+v.id+"').click()", nil)
		has(t, p, "#view ."+v.id, "expected the magic number of pcap or pcapng, plain, gzip or zstd, found 44 65 61 72")
		settled(t, p)
	}

	give(t, p, written(t, dir, "cut.pcapng", plain[:20000]))
	has(t, p, ".verdict", "loses")
	has(t, p, ".notice:not([hidden])", "cut short: ends at byte 20000 inside packet block 111")

	var zipped, squeezed bytes.Buffer
	z := gzip.NewWriter(&zipped)
	s, err := zstd.NewWriter(&squeezed)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []interface {
		Write(p []byte) (int, error)
		Close() error
	}{z, s} {
		if _, err := w.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var verdicts []string
	for name, text := range map[string][]byte{
		"x.pcapng": plain, "x.pcapng.gz": zipped.Bytes(), "x.pcapng.zst": squeezed.Bytes(),
	} {
		give(t, p, written(t, dir, name, text))
		verdicts = append(verdicts, textOf(t, p, ".verdict"))
	}
	if verdicts[0] == "" || verdicts[0] != verdicts[1] || verdicts[0] != verdicts[2] {
		t.Errorf("plain, gzip and zstd: %q", verdicts)
	}

	kill := testenv.Capture(t, "u210_timeout_kill.client.pcap.gz")
	give(t, p, kill, filepath.Join(dir, "x.pcapng"))
	has(t, p, ".verdict", "fell silent first")
	p.Eval(t, `(() => { const s = document.querySelector("#capture select"); s.selectedIndex = 1;
		s.dispatchEvent(new Event("change")); })()`, nil)
	settled(t, p)
	has(t, p, ".verdict", verdicts[0])
	settled(t, p)
	complaints(t, b)
}

// Reading is cancelled at once and can begin again. A second capture ends the reading of the first.
func TestCancel(t *testing.T) {
	long(t)
	large := filepath.Join(t.TempDir(), "large.pcapng")
	c := exec.Command(testenv.Ackscope(t), "simulate", "--protocol", "gaffer:reliable", "--seed", "3", "--loss", "3%",
		"--rate", "60", "--duration", "1700s", "--tap", "a", "-w", large) // two packets for each 1/60 s
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	b, p := open(t, 1280, 900, false)
	begin := func() {
		p.Choose(t, "input[type=file]", large)
		p.Until(t, "document.title.startsWith('large') && document.querySelector('progress:not([hidden])')?.value > 0")
	}
	begin()
	started := time.Now()
	p.Eval(t, "[...document.querySelectorAll('#status button')].find((b) => b.textContent === 'Cancel').click()", nil)
	has(t, p, "#view", "Reading was cancelled")
	if took := time.Since(started); took > time.Second {
		t.Errorf("to cancel took %v", took)
	}
	settled(t, p)
	p.Press(t, "3")
	has(t, p, "#view", "Reading was cancelled")
	p.Eval(t, "document.querySelector('#view .problem button').click()", nil)
	p.Until(t, "document.querySelector('.verdict, .packets .vrow:nth-child(3)')")
	settled(t, p)

	p.Press(t, "1")
	p.Until(t, "document.querySelector('.verdict')")
	settled(t, p)
	p.Choose(t, "input[type=file]", testenv.Capture(t, "linktype-vlan.pcap.gz"))
	p.Until(t, "document.title.startsWith('linktype') && document.querySelector('.verdict')")
	settled(t, p)
	begin()
	p.Choose(t, "input[type=file]", testenv.Capture(t, "u210_timeout_kill.client.pcap.gz"))
	has(t, p, ".verdict", "fell silent first")
	settled(t, p)
	var count int
	p.Eval(t, "window.ackscope.count()", &count)
	if count != 881 {
		t.Errorf("the page has %d packets of the second capture, expected 881", count)
	}
	complaints(t, b)
}

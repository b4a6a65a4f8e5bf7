package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
)

// get sends a request to the metrics server.
func get(t *testing.T, method, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:9190"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// series returns a value of an exposition, or -1 if it is absent.
func series(text, name string) float64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64); err == nil {
				return v
			}
		}
	}
	return -1
}

// TestMetricsAndAlerts captures to a file, serves metrics and prints findings
// as they occur.
func TestMetricsAndAlerts(t *testing.T) {
	if !namespaced(t) {
		return
	}
	c := begin(t, nil, "capture", "-Z", testenv.AsUser, "-i", "veth0", "-w", filepath.Join(testenv.UserDir(t), "c.pcapng"),
		"--metrics", ":9190", "--alert", "out-of-order", "--alert", "warn", "--json")
	sent := play(t, testnet.Inject(t, "veth1"), packetsOf(t, "reliable-dup10.client.pcap.gz"),
		packetsOf(t, "u210_loss10.client.pcapng.gz"))
	frames := `ackscope_capture_frames_total{interface="veth0"}`
	waitFor(t, "metrics of all packets", func() bool {
		_, text := get(t, "GET", "/metrics")
		return series(text, frames) >= float64(sent)
	})
	code, text := get(t, "GET", "/metrics")
	for name, least := range map[string]float64{
		frames: float64(sent),
		`ackscope_packets_total{protocol="gaffer",side="a"}`:                     100,
		`ackscope_acked_packets_total{protocol="gaffer",side="a"}`:               100,
		`ackscope_packets_total{protocol="riptide",side="b"}`:                    100,
		`ackscope_rtt_seconds_count{protocol="gaffer",side="a"}`:                 100,
		`ackscope_flows{protocol="gaffer"}`:                                      1,
		`ackscope_capture_accepted_packets_total{interface="veth0"}`:             float64(sent),
		`ackscope_capture_dropped_packets_total{interface="veth0",where="ring"}`: 0,
		"ackscope_state_bytes":                                                   1,
		"ackscope_state_limit_bytes":                                             1 << 20,
		"process_resident_memory_bytes":                                          1 << 20,
	} {
		if v := series(text, name); v < least {
			t.Errorf("%s is %v, expected %v at least", name, v, least)
		}
	}
	if !strings.Contains(text, `rule="duplicate",severity="note"`) {
		t.Error("no finding is counted of the capture's duplicates")
	}
	if code != http.StatusOK {
		t.Errorf("GET /metrics: %d", code)
	}
	for path, want := range map[string]int{"/": http.StatusOK, "/other": http.StatusNotFound} {
		if code, _ := get(t, "GET", path); code != want {
			t.Errorf("GET %s: %d, expected %d", path, code, want)
		}
	}
	if code, _ := get(t, "POST", "/metrics"); code != http.StatusMethodNotAllowed {
		t.Errorf("POST /metrics: %d, expected 405", code)
	}
	if err := c.end(t, os.Interrupt); err != nil {
		t.Fatalf("%v\n%s", err, c.errors.Bytes())
	}
	alerts := 0
	for line := range strings.Lines(c.out.String()) {
		var o struct {
			Rule, Severity string
			Provisional    bool
			Frames         []int
			Interface      string
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if o.Interface != "" {
			continue // the totals at the end
		}
		if alerts++; !o.Provisional || len(o.Frames) == 0 || o.Rule != "out-of-order" && o.Severity == "note" {
			t.Errorf("alert %q: expected out-of-order, or a warning, with frames, provisional", line)
		}
	}
	if alerts == 0 {
		t.Error("no alert was printed")
	}
}

var control = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// TestRollingTables checks what listings draw on a terminal during a capture.
// They redraw in place, fit the terminal's columns and lines, and use colours
// only if asked to.
func TestRollingTables(t *testing.T) {
	script := testenv.Need(t, "script")
	if !namespaced(t) {
		return
	}
	const columns, rows = 72, 12
	dir := t.TempDir()
	var running []*exec.Cmd
	listings := []string{"flows", "events", "findings", "events --color always"}
	for i, listing := range listings {
		line := fmt.Sprintf("stty cols %d rows %d; exec %s %s -Z %s -i veth0 --every 250ms -a packets:1500", columns, rows,
			program(t), listing, testenv.AsUser)
		cmd := exec.Command(script, "-qfec", line, filepath.Join(dir, fmt.Sprint("screen", i)))
		cmd.Env = append(os.Environ(), "TERM=xterm", "SHELL=/bin/sh")
		if !strings.Contains(listing, "color") {
			cmd.Env = append(cmd.Env, "NO_COLOR=1")
		}
		cmd.Stdin = strings.NewReader("")
		start(t, cmd)
		running = append(running, cmd)
	}
	shown := func(i int) []byte {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("screen", i)))
		if err != nil {
			return nil
		}
		return b
	}
	for i := range listings {
		waitFor(t, "capture of "+listings[i], func() bool { return bytes.Contains(shown(i), []byte("capturing on veth0")) })
	}
	game := packetsOf(t, "reliable-dup10.client.pcap.gz")
	out := testnet.Inject(t, "veth1")
	play(t, out, game[:1000])
	for i := range listings { // the second drawing replaces the first
		waitFor(t, "table of "+listings[i]+
			" drawn anew", func() bool { return bytes.Count(shown(i), []byte("A\r\x1b[J")) >= 2 })
	}
	play(t, out, game[1000:1500])
	for i, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", listings[i], err, shown(i))
		}
		text := shown(i)
		if coloured := bytes.Contains(text, []byte("m")) &&
			regexp.MustCompile(`\x1b\[[0-9;]*m`).Match(text); coloured != strings.Contains(listings[i], "color") {
			t.Errorf("%s: coloured is %v", listings[i], coloured)
		}
		pictures := bytes.Split(text, []byte("\r\x1b[J"))
		for _, picture := range pictures[1 : len(pictures)-1] {
			lines := strings.Split(strings.TrimSuffix(string(picture), "\n"), "\n")
			if len(lines) > rows {
				t.Errorf("%s draws %d lines on a terminal of %d", listings[i], len(lines), rows)
			}
			for _, l := range lines {
				if n := utf8.RuneCountInString(control.ReplaceAllString(strings.TrimSuffix(l, "\r"), "")); n > columns {
					t.Errorf("%s draws %d columns on a terminal of %d: %q", listings[i], n, columns, l)
				}
			}
		}
	}
}

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/paths"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/ring"
)

// allCaptures returns the captures of the repository.
func allCaptures(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(testenv.Capture(t, "README.md")), "*.pcap*.gz"))
	if err != nil || len(paths) < 200 {
		t.Fatalf("%d captures, %v", len(paths), err)
	}
	return paths
}

var fileKey = regexp.MustCompile(`(?:,"file":"([^"]*)")|(?:"file":"([^"]*)",)`)

// splitFiles groups JSON Lines by their key file, and removes that key.
func splitFiles(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]*strings.Builder{}
	for line := range strings.Lines(text) {
		m := fileKey.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("expected a file in %.300s", line)
		}
		name := m[1] + m[2]
		if out[name] == nil {
			out[name] = &strings.Builder{}
		}
		out[name].WriteString(strings.Replace(line, m[0], "", 1))
	}
	texts := map[string]string{}
	for name, b := range out {
		texts[name] = b.String()
	}
	return texts
}

// A command prints the same about several captures in one call as about each
// alone, except for the file's name. Many of these captures have equal
// addresses.
func TestFilesApart(t *testing.T) {
	testenv.Grid(t, "every listing over every capture, twice")
	all := allCaptures(t)
	some := slices.DeleteFunc(slices.Clone(all), func(p string) bool {
		return !strings.Contains(p, "reliable-loss10") && !strings.Contains(p, "u210_loss10") &&
			!strings.Contains(p, "u210_clean") && !strings.Contains(p, "u210_timeout")
	})
	for _, c := range []struct {
		args  []string
		paths []string
	}{
		{[]string{"findings", "--json"}, all},
		{[]string{"flows", "--json"}, all},
		{[]string{"findings", "--json", "-Y", "frame.number > 100"}, some},
		{[]string{"flows", "--json", "--live"}, some},
		{[]string{"findings", "--json", "--live"}, some},
		{[]string{"events", "--json"}, some},
		{[]string{"events", "--json", "-Y", "flow == 1 && frame.number < 300 && rel.acked"}, some},
		{[]string{"messages", "--json"}, some},
		{[]string{"packets", "--json", "-Y", "frame.number < 50"}, some},
		{[]string{"ledger", "--json"}, some},
		{[]string{"autopsy", "--json"}, some},
		{[]string{"export", "jsonl", "--table", "flows", "-o", "-"}, some},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			together := splitFiles(t, output(t, append(slices.Clone(c.args), c.paths...)...))
			lines := 0
			for _, path := range c.paths {
				alone := output(t, append(slices.Clone(c.args), path)...)
				if fileKey.MatchString(alone) {
					t.Errorf("%s: one capture alone has a file in its objects", path)
				}
				if alone != together[path] {
					diffLines(t, path, alone, together[path])
				}
				lines += strings.Count(alone, "\n")
			}
			if lines < 2 {
				t.Errorf("%d lines of all: expected more to compare", lines)
			}
		})
	}
}

// --flow FILE:N and --at FILE:FRAME name a flow of one of several captures. Its
// state is the same as in that capture alone.
func TestFlowOfFile(t *testing.T) {
	client, server := testenv.Capture(t, "reliable-two-clients.client.pcap.gz"),
		testenv.Capture(t, "reliable-two-clients.server.pcap.gz")
	alone := output(t, "state", "--json", "--flow", "2", "--at", "300", server)
	for _, args := range [][]string{
		{"--flow", server + ":2", "--at", "300"},
		{"--flow", filepath.Base(server) + ":2", "--at", "300"},
		{"--flow", "2:2", "--at", "300"},
		{"--flow", filepath.Base(server) + ":2", "--at", "2:300"},
		{"--flow", "2:2", "--at", filepath.Base(server) + ":300"},
	} {
		together := splitFiles(t, output(t, slices.Concat([]string{"state", "--json"}, args, []string{client, server})...))
		if together[server] != alone || len(together) != 1 {
			t.Errorf("%q: differs from the capture alone", args)
		}
	}
	if got := output(t, "state", "--json", "--flow", filepath.Base(server)+":2", "--at", "300", server); got != alone {
		t.Error("FILE:N of one capture alone differs")
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"flow numbers begin at 1 in each", []string{"state", "--flow", "2", client, server}},
		{"frame numbers begin at 1 in each", []string{"state", "--at", "300", client, server}},
		{"which flow", []string{"graph", client, server}},
		{"no file is named", []string{"graph", "--flow", "other:1", client, server}},
		{"2 files are named", []string{"graph", "--flow", filepath.Base(client) + ":1", client, client}},
		{"of another capture", []string{"state", "--flow", "1:1", "--at", "2:30", client, server}},
		{"flow numbers begin at 1 in each", []string{"export", "qlog", "--flow", "1", "-o", "-", client, server}},
		{"--join", []string{"packets", "-w", filepath.Join(t.TempDir(), "x.pcapng"), client, server}},
		{"--join", []string{"export", "pcapng", "-o", filepath.Join(t.TempDir(), "x.pcapng"), client, server}},
		{"--join", []string{"flows", "--metrics", "127.0.0.1:0", client, server}},
	} {
		var out, complaint bytes.Buffer
		code := runKnown(c.args, app.Streams{In: strings.NewReader(""), Out: &out, Err: &complaint})
		if code != app.ExitFailed || !strings.Contains(complaint.String(), c.says) {
			t.Errorf("%q: exit %d, %q: expected %q", c.args, code, complaint.String(), c.says)
		}
	}
}

// writeParts splits a capture into one file for each name, by frames.
func writeParts(t *testing.T, from string, names []string) (paths []string) {
	t.Helper()
	in, err := capture.Open([]string{from}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var frames []capture.Frame
	for {
		var f capture.Frame
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		f.Data = bytes.Clone(f.Data)
		frames = append(frames, f)
	}
	folder := t.TempDir()
	for i, name := range names {
		path := filepath.Join(folder, name)
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w, err := capture.NewClassicWriter(file, frames[0].LinkType, 0, capture.Nanoseconds, 0)
		if err != nil {
			t.Fatal(err)
		}
		for j := i * len(frames) / len(names); j < (i+1)*len(frames)/len(names); j++ {
			if err := w.WriteFrame(&frames[j]); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), file.Close()); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// essence returns findings without their frames, which are numbered by file.
func essence(t *testing.T, text string) (list []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var x struct {
			Flow                                 int
			Side, Rule, Certainty, Time, Message string
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(x))
	}
	return list
}

// rowsOf returns names of files as rotating writers choose them.
func rowsOf() map[string][]string {
	ours := &ring.Row{Path: "match.pcap"}
	at := time.Date(2026, 11, 22, 10, 15, 0, 0, time.UTC)
	return map[string][]string{
		"ackscope -b": {ours.Next(at), ours.Next(at.Add(time.Second)), ours.Next(at.Add(time.Second))},
		"dumpcap": {
			"m_00009_20261122101500.pcapng", "m_00010_20261122101503.pcapng",
			"m_00011_20261122101506.pcapng",
		},
		"dumpcap -b nametimenum:2": {
			"m_20261122101500_00001.pcapng", "m_20261122101503_00002.pcapng",
			"m_20261122101506_00003.pcapng",
		},
		"tcpdump -C":             {"m.pcap", "m.pcap1", "m.pcap2"},
		"tcpdump -C -W, wrapped": {"m.pcap2", "m.pcap0", "m.pcap1"},
		"tcpdump -G": {
			"m-2026-11-22_10:15:00.pcap", "m-2026-11-22_10:15:05.pcap",
			"m-2026-11-22_10:15:10.pcap",
		},
		"tcpdump -G %s": {"m-1795342500.pcap", "m-1795342505.pcap", "m-1795342510.pcap"},
	}
}

// A capture that was written as a row of files has the findings of the whole,
// in whatever order its files are named.
func TestRotatedRow(t *testing.T) {
	whole := testenv.Capture(t, "reliable-loss10.client.pcap.gz")
	want := essence(t, output(t, "findings", "--json", whole))
	for writer, names := range rowsOf() {
		paths := writeParts(t, whole, names)
		slices.Sort(paths)
		var out, complaint bytes.Buffer
		if code := runKnown(append([]string{"findings", "--json"}, paths...),
			app.Streams{In: strings.NewReader(""), Out: &out, Err: &complaint}); code != 0 {
			t.Fatalf("%s: exit %d: %s", writer, code, complaint.String())
		}
		if got := essence(t, out.String()); !slices.Equal(got, want) {
			t.Errorf("%s: found\n%s\nexpected\n%s", writer, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if n := strings.Count(complaint.String(), "are one rotated capture"); n != 1 {
			t.Errorf("%s: said %d times that it is a row: %s", writer, n, complaint.String())
		}
		if apart := essence(t, output(t, append([]string{"findings", "--json", "--join=false"}, paths...)...)); slices.Equal(
			apart, want) {
			t.Errorf("%s: --join=false reads them as one", writer)
		}
	}
}

// Names alone make no row. These are separate captures: files of the same time,
// of another link type, of another day, and with a missing file between them.
func TestNoRow(t *testing.T) {
	parts := writeParts(t, testenv.Capture(t, "reliable-loss10.client.pcap.gz"),
		[]string{"m.pcap", "m.pcap1", "m.pcap2", "m.pcap3"})
	copyOf := func(from, name string) string {
		t.Helper()
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	beside := func(first, second string, names [2]string) []string {
		t.Helper()
		a := copyOf(first, names[0])
		b := filepath.Join(filepath.Dir(a), names[1])
		if err := os.Rename(copyOf(second, names[1]), b); err != nil {
			t.Fatal(err)
		}
		return []string{a, b}
	}
	other := writeParts(t, testenv.Capture(t, "reliable-clean.client.pcap.gz"), []string{"whole.pcap"})[0]
	for name, files := range map[string][]string{
		"one missing":       {parts[0], parts[2]},
		"overlapping":       beside(parts[0], parts[0], [2]string{"m.pcap", "m.pcap1"}),
		"another link type": beside(other, parts[0], [2]string{"m.pcap", "m.pcap1"}),
		"in other folders":  {parts[0], copyOf(parts[1], "m.pcap1")},
		"another base":      beside(parts[0], parts[1], [2]string{"a.pcap", "b.pcap1"}),
		"a pause": beside(parts[0], parts[3],
			[2]string{"m-2026-11-22_10:15:00.pcap", "m-2026-11-22_10:15:15.pcap"}),
		"the same file":     {parts[0], parts[0]},
		"no capture":        {parts[0], copyOf(testenv.Capture(t, "README.md"), "m.pcap1")},
		"digits of its own": beside(parts[0], parts[1], [2]string{"loss10.pcap", "loss11.pcap"}),
		"a device, no file": {parts[0], os.DevNull},
		"not there":         {parts[0], filepath.Join(t.TempDir(), "m.pcap1")},
		"two runs, one base": beside(parts[0], parts[1],
			[2]string{"m_00001_20261122101500.pcap", "m_00001_20261122101505.pcap"}),
	} {
		for _, group := range paths.RotatedRows(files) {
			if len(group) > 1 {
				t.Errorf("%s: %q are read as a row", name, group)
			}
		}
	}
	for i, want := range []int{1, 1} {
		if got := len(paths.RotatedRows([][]string{parts, {parts[3], parts[1], parts[0], parts[2]}}[i])); got != want {
			t.Errorf("the row itself is %d groups", got)
		}
	}
}

// --fail-on and the last line cover all captures.
func TestGateOverFiles(t *testing.T) {
	bad, good := testenv.Capture(t, "plain-le-stalebug-loss98.client.pcap.gz"),
		testenv.Capture(t, "reliable-clean.client.pcap.gz")
	var out, complaint bytes.Buffer
	if code := runKnown([]string{"findings", "--fail-on", "error", bad, good},
		app.Streams{In: strings.NewReader(""), Out: &out, Err: &complaint}); code != app.ExitGate {
		t.Errorf("exit %d, expected %d", code, app.ExitGate)
	}
	if !strings.Contains(out.String(), "\nall 2 captures: 1 error, ") {
		t.Errorf("no sum of all captures in\n%s", out.String())
	}
	for _, path := range []string{bad, good} {
		if !strings.Contains(out.String(), "==> "+path+" <==\n") {
			t.Errorf("%s is not named", path)
		}
	}
}

// A capture that cannot be read ends the command, after the output for those
// before it.
func TestBadFileAmongOthers(t *testing.T) {
	good, no := testenv.Capture(t, "reliable-loss10.client.pcap.gz"), testenv.Capture(t, "README.md")
	for _, command := range []string{"flows", "findings", "events", "messages", "packets", "ledger", "autopsy"} {
		var out, complaint bytes.Buffer
		if code := runKnown([]string{command, good, no},
			app.Streams{In: strings.NewReader(""), Out: &out, Err: &complaint}); code != app.ExitFailed {
			t.Errorf("%s: exit %d", command, code)
		}
		if !strings.Contains(out.String(), filepath.Base(good)) || !strings.Contains(complaint.String(), "README.md") {
			t.Errorf("%s: %d bytes, %s", command, out.Len(), complaint.String())
		}
	}
}

// A report has a part for each capture, with anchors of its own.
func TestReportOfSeveral(t *testing.T) {
	client, server := testenv.Capture(t, "reliable-loss10.client.pcap.gz"),
		testenv.Capture(t, "reliable-loss10.server.pcap.gz")
	page := output(t, "report", "--replay=false", "-o", "-", client, server)
	if strings.Count(page, "<!DOCTYPE html>") != 1 || strings.Count(page, "</html>") != 1 ||
		strings.Count(page, `<header class="top`) != 2 {
		t.Error("expected one page with two headers")
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if seen[m[1]] {
			t.Errorf("the anchor %q is there twice", m[1])
		}
		seen[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !seen[m[1]] {
			t.Errorf("a link to %q, which is not there", m[1])
		}
	}
	text := output(t, "report", "--replay=false", "--format", "markdown", client, server)
	for _, name := range []string{"# reliable-loss10.client", "# reliable-loss10.server"} {
		if !strings.Contains(text, name) {
			t.Errorf("no part named %q", name)
		}
	}
}

// -c counts over all captures.
func TestCountOverFiles(t *testing.T) {
	client, server := testenv.Capture(t, "reliable-loss10.client.pcap.gz"),
		testenv.Capture(t, "reliable-loss10.server.pcap.gz")
	if n := strings.Count(output(t, "packets", "--json", "-c", "20", client, server), "\n"); n != 20 {
		t.Errorf("%d packets, expected 20", n)
	}
	var packets uint64
	for line := range strings.Lines(output(t, "flows", "--json", "-c", "2500", client, server)) {
		var x struct {
			A uint64 `json:"packets_a"`
			B uint64 `json:"packets_b"`
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		packets += x.A + x.B
	}
	if packets > 2500 || packets < 2400 {
		t.Errorf("%d packets in flows, expected some 2500", packets)
	}
}

// Flows of qlog are grouped by their file.
func TestQlogOfSeveral(t *testing.T) {
	client, server := testenv.Capture(t, "reliable-loss10.client.pcap.gz"),
		testenv.Capture(t, "reliable-loss10.server.pcap.gz")
	var x struct {
		Traces []struct {
			Title  string
			Events []json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(output(t, "export", "qlog", "-o", "-", client, server)), &x); err != nil {
		t.Fatal(err)
	}
	if len(x.Traces) != 4 || !strings.HasPrefix(x.Traces[0].Title, client) ||
		!strings.HasPrefix(x.Traces[3].Title, server) {
		t.Errorf("%d traces", len(x.Traces))
	}
	if err := json.Unmarshal([]byte(output(t, "export", "qlog", "--flow", "2:1", "-o", "-", client, server)),
		&x); err != nil {
		t.Fatal(err)
	}
	if len(x.Traces) != 2 || !strings.HasPrefix(x.Traces[0].Title, server) {
		t.Errorf("--flow 2:1: %d traces", len(x.Traces))
	}
}

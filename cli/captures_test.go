package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/internal/testenv"
)

// runText runs a command, and returns its outputs and exit code.
func runText(args ...string) (out, complaint string, code int) {
	var o, e bytes.Buffer
	code = runKnown(args, app.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return o.String(), e.String(), code
}

var captureHeading = regexp.MustCompile(`(?m)^==> (.*) <==\n`)

// A pattern of captures is read as each capture alone: the same text, and the
// gravest exit code.
func TestPatternAsEachAlone(t *testing.T) {
	t.Chdir(filepath.Dir(testenv.Capture(t, "README.md")))
	const pattern = "reliable-*.client.pcap*"
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) < 10 {
		t.Fatalf("%d captures, %v", len(names), err)
	}
	for _, failOn := range []string{"error", "warn"} {
		all, complaint, code := runText("findings", "--fail-on", failOn, pattern)
		if argued, _, same := runText(append([]string{"findings", "--fail-on", failOn}, names...)...); argued != all ||
			same != code {
			t.Errorf("the pattern gives %d bytes and exit %d, the names %d and %d", len(all), code, len(argued), same)
		}
		all, sum, ok := strings.Cut(all, "\nall ")
		if !ok || !strings.Contains(sum, "captures: ") {
			t.Errorf("expected a total, found %q", sum)
		}
		headings := captureHeading.FindAllStringSubmatchIndex(all, -1)
		if len(headings) != len(names) {
			t.Fatalf("%d headings of %d captures: %s", len(headings), len(names), complaint)
		}
		gravest := app.ExitDone
		for i, at := range headings {
			end := len(all)
			if i+1 < len(headings) {
				end = headings[i+1][0] - 1 // a blank line
			}
			name := all[at[2]:at[3]]
			if name != names[i] {
				t.Errorf("capture %d is %s, expected %s", i+1, name, names[i])
			}
			alone, _, one := runText("findings", "--fail-on", failOn, name)
			if gravest = max(gravest, one); alone != all[at[1]:end] {
				diffLines(t, name, alone, all[at[1]:end])
			}
		}
		if code != gravest {
			t.Errorf("--fail-on %s: exit %d, expected %d", failOn, code, gravest)
		}
	}
}

// A capture that cannot be read stops no other. Its error is printed as it
// comes, the total counts it, and the exit code is 2.
func TestBadCaptureAmongOthers(t *testing.T) {
	dir := t.TempDir()
	copyInto := func(name, from string) {
		data, err := os.ReadFile(testenv.Capture(t, from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	copyInto("a.pcap.gz", "reliable-clean.client.pcap.gz")
	copyInto("c.pcap.gz", "reliable-burst.client.pcap.gz")
	if err := os.WriteFile(filepath.Join(dir, "b.pcap"), []byte("no capture"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		args []string
		says string // on standard output, of what is behind the bad capture
	}{
		{[]string{"findings"}, "loss-burst"},
		{[]string{"findings"}, "2 captures: 1 warning, 2 notes in 2 of 2 flows; 1 of 3 could not be read"},
		{[]string{"findings", "--fail-on", "warn"}, "loss-burst"},
		{[]string{"findings", "--json"}, `c.pcap.gz"`},
		{[]string{"findings", "--live"}, "loss-burst"},
		{[]string{"flows"}, "c.pcap.gz <=="},
		{[]string{"events", "--json"}, `c.pcap.gz"`},
		{[]string{"messages"}, "c.pcap.gz <=="},
		{[]string{"packets", "--json"}, `c.pcap.gz"`},
		{[]string{"ledger"}, "1 of 3 could not be read"},
		{[]string{"autopsy"}, "c.pcap.gz <=="},
		{[]string{"export", "jsonl", "--table", "findings", "-o", "-"}, `"loss-burst"`},
		{[]string{"export", "csv", "--table", "flows", "-o", out}, ""},
		{[]string{"export", "qlog", "-o", out}, ""},
		{[]string{"report", "--replay=false", "--format", "markdown", "-o", out}, ""},
	} {
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
		text, complaint, code := runText(append(c.args, dir)...)
		if c.says == "" {
			written, err := os.ReadFile(out)
			if err != nil {
				t.Errorf("%q: %v", c.args, err)
			}
			if !bytes.Contains(written, []byte("c.pcap.gz")) {
				t.Errorf("%q: the capture behind the bad one is not in the file", c.args)
			}
		} else if !strings.Contains(text, c.says) {
			t.Errorf("%q: expected %q on standard output, found %.2000s", c.args, c.says, text)
		}
		bad, last, ok := strings.Cut(complaint, "\n")
		if code != app.ExitFailed || !ok || !strings.Contains(bad, "b.pcap: not a readable capture") ||
			!strings.HasSuffix(last, "ackscope: 1 of 3 captures could not be read\n") {
			t.Errorf("%q: exit %d, %q", c.args, code, complaint)
		}
	}
	missing, good := filepath.Join(dir, "none.pcap"), filepath.Join(dir, "c.pcap.gz")
	text, complaint, code := runText("findings", missing, good)
	if code != app.ExitFailed || !strings.Contains(text, "loss-burst") ||
		!strings.Contains(complaint, "none.pcap: no such file") || !strings.Contains(complaint, "1 of 2 captures") {
		t.Errorf("a missing file: exit %d, %q, %.300s", code, complaint, text)
	}
	// A wrong flag concerns all captures, and is reported once.
	if _, complaint, code := runText("findings", "--vantage", "here", dir); code != app.ExitFailed ||
		strings.Count(complaint, "\n") != 1 {
		t.Errorf("a wrong flag: exit %d, %q", code, complaint)
	}
}

package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/about"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/files"
	"github.com/ackscope/ackscope/internal/jsonschema"
	"github.com/ackscope/ackscope/internal/testenv"
)

// The tables that commands print follow their schemas.
func TestSchemas(t *testing.T) {
	schemas := decodeJSON(t, []byte(output(t, "schema"))).(map[string]any)
	sets := exported
	if testing.Short() {
		sets = sets[:2]
	}
	for _, set := range sets {
		var paths []string
		for _, name := range set {
			paths = append(paths, testenv.Capture(t, name))
		}
		for _, name := range files.TableNames {
			args := []string{name, "--json"}
			if name == "packets" {
				args = append(args, "-V", "-x")
			}
			for line := range strings.Lines(output(t, append(args, paths...)...)) {
				if err := jsonschema.Validate(schemas[name].(map[string]any), decodeJSON(t, []byte(line))); err != nil {
					t.Errorf("%s of %s: %v in %s", name, set[0], err, line)
					break
				}
			}
		}
	}
	for _, c := range []string{`{"frame":"1"}`, `{"frame":1,"surplus":1}`, `{}`} {
		if jsonschema.Validate(schemas["events"].(map[string]any), decodeJSON(t, []byte(c))) == nil {
			t.Errorf("%s passes for an event", c)
		}
	}
}

// outcome runs a command line and returns its outputs and exit code.
func outcome(args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	code = runKnown(args, app.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return o.String(), e.String(), code
}

// Outputs that are not tables follow their schemas, and the test sees every
// kind of line. A command without a schema refuses --json.
func TestObjectSchemas(t *testing.T) {
	schemas := decodeJSON(t, []byte(output(t, "schema"))).(map[string]any)
	capt := func(name string) string { return testenv.Capture(t, name) }
	out, tables := filepath.Join(t.TempDir(), "out.pcapng"), filepath.Join(t.TempDir(), "tables")
	loss := capt("reliable-loss10.client.pcap.gz")
	for name, runs := range map[string][][]string{
		"compare": {
			{loss, capt("reliable-clean.client.pcap.gz")},
			{capt("u210_loss10.client.pcapng.gz"), capt("u210_loss30.client.pcap.gz")},
			{loss, capt("u210_loss30.client.pcap.gz")},
		},
		"batch": {{"-o", tables, loss}, {"-o", tables, "--baseline", tables, loss}, {"-o", tables, "--share", "0/2", loss}},
		"overview": {
			{loss, capt("u210_falseack.client.pcap.gz")},
			{"--all", capt("u210_timeout_kill.client.pcap.gz")},
			{"-d", "udp.port==40000,srdp", loss},
		},
		"state": {
			{loss, "--at", "300"},
			{"--diff", "290", "310", loss},
			{capt("u210_loss10.client.pcapng.gz"), "--at", "40"},
		},
		"autopsy": {{capt("u210_loss10.client.pcapng.gz")}, {capt("u200_lobby.client.pcap.gz")}},
		"guess":   {{capt("u21d_clean.client.pcap.gz"), "--most", "2"}},
		"ledger":  {{loss}, {capt("u210_loss10.client.pcapng.gz")}},
		"replay": {
			{loss},
			{capt("plain-le-clean.client.pcap.gz"), "--matrix"},
			{capt("u210_loss10.client.pcapng.gz"), "--what-if", "resend=50ms"},
		},
		"merge": {
			{loss, capt("reliable-loss10.server.pcap.gz")},
			{"--packets", loss, capt("reliable-loss10.server.pcap.gz")},
		},
		"anonymise": {{"--ports", loss, out}},
		"simulate":  {{"--fault", "list"}},
		"capture": {
			{"-D"},
			{"-r", capt("reliable-burst.client.pcap.gz"), "--on", "warn", "--on", "rtt > 1ms", "-w", t.TempDir()},
		},
		"interfaces": {{"-D"}},
		"fields":     {{}},
		"explain":    {{}, {"false-ack"}},
		"protocols":  {{}, {"gaffer:reliable"}},
		"thresholds": {{}, {"--set", "loss=off"}},
	} {
		seen := map[string]bool{}
		for _, args := range runs {
			command := name
			if name == "interfaces" {
				command = "packets"
			}
			text, errs, code := outcome(append([]string{command, "--json"}, args...)...)
			if code == app.ExitFailed || text == "" {
				t.Errorf("%s %q: exit %d: %s", name, args, code, errs)
			}
			for line := range strings.Lines(text) {
				v := decodeJSON(t, []byte(line))
				if err := jsonschema.Validate(schemas[name].(map[string]any), v); err != nil {
					t.Errorf("%s %q: %v in %s", name, args, err, line)
					break
				}
				kinds, _ := schemas[name].(map[string]any)["oneOf"].([]any)
				for _, kind := range kinds {
					if jsonschema.Validate(kind.(map[string]any), v) == nil {
						seen[kind.(map[string]any)["title"].(string)] = true
					}
				}
			}
		}
		kinds, _ := schemas[name].(map[string]any)["oneOf"].([]any)
		for _, kind := range kinds {
			// a live capture is needed: testdata/script/live.txtar has it
			if title := kind.(map[string]any)["title"].(string); !seen[title] && title != "totals" {
				t.Errorf("%s: no line was of kind %q", name, title)
			}
		}
		delete(schemas, name)
	}
	for _, name := range files.TableNames { // TestSchemas checks them
		delete(schemas, name)
	}
	delete(schemas, "status") // package unit has the test
	for name := range schemas {
		t.Errorf("the schema of %s is held against nothing", name)
	}
	a := &app.App{Registry: protocols()}
	for _, c := range command(known, a).Commands() {
		if slices.Contains(about.SchemaNames(), c.Name()) || !c.IsAvailableCommand() {
			continue
		}
		if _, errs, code := outcome(c.Name(), "--json", loss); code != app.ExitFailed {
			t.Errorf("%s --json: exit %d (%s), expected a refusal: it has no schema", c.Name(), code, errs)
		}
	}
}

// Every command has its manual page, which is the same each time.
func TestManualPages(t *testing.T) {
	folder := t.TempDir()
	output(t, "man", folder)
	pages := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c.HasParent() {
			return
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !bytes.Contains(text, []byte(".SH SYNOPSIS")) {
			t.Errorf("%s: %v, or no synopsis in it", name, err)
		}
		pages++
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	a := &app.App{Registry: protocols()}
	walk(command(known, a))
	if pages < 20 {
		t.Errorf("%d pages, expected 20 at least", pages)
	}
	again := t.TempDir()
	output(t, "man", again)
	one, err := os.ReadFile(filepath.Join(folder, "ackscope-findings.1"))
	if err != nil {
		t.Fatal(err)
	}
	if other, err := os.ReadFile(filepath.Join(again, "ackscope-findings.1")); err != nil || !bytes.Equal(one, other) {
		t.Errorf("a second run writes another page (%v)", err)
	}
}

// The shell accepts the script of completions, and the completions contain our
// words.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		text := output(t, "completion", shell)
		if !strings.Contains(text, "ackscope") {
			t.Errorf("%s: no completion", shell)
		}
		if shell == "bash" {
			bash := testenv.Need(t, "bash")
			check := exec.Command(bash, "-n")
			check.Stdin = strings.NewReader(text)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("bash refuses it: %v\n%s", err, out)
			}
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"exp"}, "export"},
		{[]string{"export", ""}, "parquet"},
		{[]string{"export", "csv", "--table", "me"}, "messages"},
		{[]string{"export", "qlog", "--dialect", ""}, "qvis"},
		{[]string{"packets", "-T", ""}, "ek"},
		{[]string{"packets", "-t", "ad"}, "adoy"},
		{[]string{"packets", "-e", "gaffer.seq"}, "gaffer.sequence"},
		{[]string{"schema", ""}, "findings"},
	} {
		if got := output(t, append([]string{"__complete"}, c.args...)...); !strings.Contains(got, c.want) {
			t.Errorf("%q completes to %q, expected %s among it", c.args, got, c.want)
		}
	}
}

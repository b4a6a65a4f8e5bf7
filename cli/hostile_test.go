package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
)

// hostileText contains one of each kind of text that an output must not
// contain:
//
//   - an escape sequence that sets the terminal's title, and a forged line of
//     JSON;
//   - C1 controls, DEL, controls of direction, and line separators;
//   - invisible characters below and above U+FFFF;
//   - bytes that are not UTF-8.
const hostileText = "evil\x1b]0;x\a\x1b[31m\r\n{\"forged\":1}\n\u009b31m\x7f\u202e\u2066\u200e\u061c\u2028\u2029\ufeff\U000e0041\x00\x9b\xff<b>\"';|`"

// hostileName is hostileText without the characters that a file name cannot
// contain.
var hostileName = strings.NewReplacer("\x00", "", "/", "").Replace(hostileText)

// forbidden returns the first forbidden character of an output, or "". Lines
// end in \n, and in \r\n in CSV.
func forbidden(output string) string {
	for i := 0; i < len(output); {
		r, n := utf8.DecodeRuneInString(output[i:])
		bad := ""
		switch {
		case r == utf8.RuneError && n == 1:
			bad = fmt.Sprintf("byte %#02x", output[i])
		case r == '\n' || r == '\t' || r == '\r' && strings.HasPrefix(output[i:], "\r\n"):
		case r < 0x20, r >= 0x7f && r < 0xa0, r == 0x61c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 &&
			r <= 0x2069, r == 0xfeff, r >= 0xe0000 && r < 0xe1000:
			bad = fmt.Sprintf("U+%04X", r)
		}
		if bad != "" {
			return fmt.Sprintf("%s in %q", bad, output[max(0, i-60):min(len(output), i+60)])
		}
		i += n
	}
	if i := strings.Index(output, "\n{\"forged\""); i >= 0 || strings.HasPrefix(output, "{\"forged\"") {
		return fmt.Sprintf("a forged line: %q", output[max(0, i-60):min(len(output), i+60)])
	}
	return ""
}

// inProcess runs a command line and returns what it printed.
func inProcess(args ...string) (code int, out, complaint string) {
	var stdout, stderr bytes.Buffer
	code = runKnown(args, app.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// hostileCapture writes a capture with a hostile name into a folder. All its
// text is hostile: comments, names of interfaces and hosts, section options,
// and the strings in Riptide's messages.
func hostileCapture(t *testing.T, dir, name string) string {
	t.Helper()
	in, err := capture.Open([]string{filepath.Join("..", "testdata", "hostile", "inj.pcapng")}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	path := filepath.Join(dir, name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := capture.NewWriter(f, capture.WriterOptions{
		Application: hostileText, OS: hostileText, Hardware: hostileText,
		Comments: []string{hostileText},
	})
	if err != nil {
		t.Fatal(err)
	}
	// A name record: the name of 10.0.0.1 is hostileText up to its NUL.
	record := append([]byte{10, 0, 0, 1}, strings.ReplaceAll(hostileText, "\x00", "")...)
	record = append(record, 0)
	head := []byte{1, 0, byte(len(record)), 0}
	for len(record)%4 != 0 {
		record = append(record, 0)
	}
	if err := w.WriteNames(append(append(head, record...), 0, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
	var frame capture.Frame
	for n := 0; ; n++ {
		if err := in.Next(&frame); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if _, err := w.AddInterface(capture.Interface{
				Name: hostileText, Description: hostileText, OS: hostileText,
				Comments: []string{hostileText}, LinkType: frame.LinkType, Resolution: capture.Nanoseconds,
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.WriteFrame(&frame, hostileText); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

const chatSchema = "messages:\n  0:\n    name: chat\n    doc: %s\n    fields:\n      - {name: who, type: string, " +
	"doc: %[1]s}\n      - {name: text, type: string}\n      - {name: n, type: int}\n"

// hostileYAML quotes the text for YAML, which must be UTF-8.
func hostileYAML() string {
	text, err := json.Marshal(strings.ToValidUTF8(hostileText, ""))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestHostileText puts one hostile text into all inputs at once. They are the
// file's name, the capture's options, comments and messages, a schema, a
// profile, and a baseline. No command prints it raw, in any format.
func TestHostileText(t *testing.T) {
	dir := t.TempDir()
	path := hostileCapture(t, dir, hostileName+".pcapng")
	second := hostileCapture(t, dir, "2"+hostileName+".pcapng")
	schema := filepath.Join(dir, hostileName+".yaml")
	profiles := filepath.Join(dir, hostileName+"-profile.yaml")
	files := map[string]string{
		schema:   fmt.Sprintf(chatSchema, hostileYAML()),
		profiles: "protocol: gaffer\nname: mine\nbase: article\ndoc: " + hostileYAML() + "\n",
		path + ".replay": "flow 1 a 10.0.0.1:30000 riptide conforms tap=a packets=300 note=" +
			strings.ReplaceAll(strings.ReplaceAll(hostileText, "\n", ""), "\r", "") + "\n",
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written := func(name string) string { return filepath.Join(dir, "out-"+name) }
	for _, c := range []struct {
		args []string
		file string // the text file that it writes
	}{
		{args: []string{"flows", path}},
		{args: []string{"flows", path, second}},
		{args: []string{"packets", path}},
		{args: []string{"packets", path, second}},
		{args: []string{"packets", "-V", "-x", path}},
		{args: []string{"packets", "-V", path, second}},
		{args: []string{"packets", "-T", "json", path}},
		{args: []string{"packets", "-T", "ek", path}},
		{args: []string{"packets", "-T", "tabs", path}},
		{args: []string{
			"packets", "-T", "fields", "-E", "header=y", "-e", "frame", "-e", "frame.file", "-e",
			"riptide.message.chat.who", "-e", "riptide.message.chat.text", "-e", "riptide.reason.name", path,
		}},
		{args: []string{
			"packets", "-T", "fields", "-E", "occurrence=l", "-E", "quote=d", "-e", "frame.file", "-e",
			"riptide.message.chat.text", path,
		}},
		{args: []string{"events", path}},
		{args: []string{"messages", path}},
		{args: []string{"messages", path, second}},
		{args: []string{"autopsy", path}},
		{args: []string{path}},
		{args: []string{"overview", "--all", "-V", path, second}},
		{args: []string{"compare", path, second}},
		{args: []string{"compare", "--html", "-o", written("c.html"), path, second}, file: written("c.html")},
		{args: []string{"findings", path}},
		{args: []string{"findings", path, second}},
		{args: []string{"ledger", path}},
		{args: []string{"graph", path}},
		{args: []string{"graph", "-o", "-", path}},
		{args: []string{"graph", "-k", "rtt", "-o", written("g.svg"), path}, file: written("g.svg")},
		{args: []string{"report", "--format", "markdown", path}},
		{args: []string{"report", "--format", "markdown", path, second}},
		{args: []string{"report", "-o", written("r.html"), path}, file: written("r.html")},
		{args: []string{"state", path}},
		{args: []string{"state", "--at", "300", path, second}},
		{args: []string{"state", "--diff", "18", "300", path}},
		{args: []string{"replay", path}},
		{args: []string{"replay", dir}},
		{args: []string{"replay", "--matrix", path}},
		{args: []string{"replay", "--junit", written("j.xml"), path}, file: written("j.xml")},
		{args: []string{"replay", "--what-if", "resend=50ms", path}},
		{args: []string{"reduce", path, written("cut.pcapng"), "--keep", "riptide-resent-ack-lost"}},
		{args: []string{"merge", path, second}},
		{args: []string{"merge", "--report", written("m.md"), path, second}, file: written("m.md")},
		{args: []string{"anonymise", path, written("a.pcapng")}},
		{args: []string{"export", "jsonl", "-o", written("jsonl"), path}},
		{args: []string{"export", "csv", "-o", written("csv"), path}},
		{args: []string{"export", "qlog", "-o", written("q.qlog"), path}, file: written("q.qlog")},
		{args: []string{"export", "wireshark", "-o", written("w.lua"), path}, file: written("w.lua")},
		{args: []string{"guess", path}},
		{args: []string{"protocols"}},
		{args: []string{"protocols", "gaffer"}},
		{args: []string{"protocols", "gaffer:mine"}},
		{args: []string{"__complete", "protocols", ""}},
		{args: []string{"__complete", "packets", "-Y", "riptide"}},
		{args: []string{"fields"}},
		{args: []string{"fields", "riptide"}},
		{args: []string{"explain"}},
	} {
		for _, format := range [][]string{nil, {"--json"}} {
			args := append(append([]string{}, c.args...), format...)
			if c.args[0] != "__complete" {
				args = append(args, "--schema", schema, "--profiles", profiles)
			} else if format != nil {
				continue
			}
			code, out, complaint := inProcess(args...)
			what := strings.Join(c.args[:1], " ") +
				fmt.Sprintf(" (%q)", strings.ReplaceAll(strings.Join(append(c.args[1:len(c.args):len(c.args)], format...), " "),
					path, "FILE"))
			if testing.Verbose() {
				t.Logf("%s: exit %d, %d bytes, %.150q", what, code, len(out), complaint)
			}
			if code == app.ExitFailed && out == "" && complaint == "" {
				t.Errorf("%s: failed without a word", what)
			}
			if bad := forbidden(out); bad != "" {
				t.Errorf("%s: standard output has %s", what, bad)
			}
			if bad := forbidden(complaint); bad != "" {
				t.Errorf("%s: standard error has %s", what, bad)
			}
			if format != nil && code == app.ExitDone {
				holdsObjects(t, what, out)
			}
			if c.file != "" && format == nil {
				text, err := os.ReadFile(c.file)
				if err != nil {
					t.Errorf("%s: %v: %s", what, err, complaint)
				} else if bad := forbidden(string(text)); bad != "" {
					t.Errorf("%s: the file that it writes has %s", what, bad)
				}
			}
		}
	}
	tables, err := filepath.Glob(filepath.Join(dir, "out-*", "*"))
	if err != nil || len(tables) < 4 {
		t.Errorf("%d tables exported: %v", len(tables), err)
	}
	for _, name := range tables {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bad := forbidden(string(text)); bad != "" {
			t.Errorf("%s has %s", name, bad)
		}
	}
}

// holdsObjects checks that each line is one JSON object.
func holdsObjects(t *testing.T, what, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Errorf("%s: a line is no object: %v: %.200q", what, err, line)
			return
		}
		if _, ok := o["forged"]; ok {
			t.Errorf("%s: a forged object: %.200q", what, line)
			return
		}
	}
}

// TestHostileArguments passes the text to every flag of every command, and as
// an argument: no error shows it raw.
func TestHostileArguments(t *testing.T) {
	a := &app.App{Registry: protocols()}
	capture := filepath.Join(repository(t), "testdata", "hostile", "inj.pcapng")
	tried := 0
	try := func(args ...string) {
		t.Helper()
		tried++
		_, out, complaint := inProcess(args...)
		if bad := forbidden(out); bad != "" {
			t.Errorf("%q: standard output has %s", args, bad)
		}
		if bad := forbidden(complaint); bad != "" {
			t.Errorf("%q: standard error has %s", args, bad)
		}
	}
	t.Chdir(t.TempDir()) // for the files that they write
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		for _, sub := range c.Commands() {
			if n := sub.Name(); n != "tui" && n != "lab" && n != "man" {
				walk(sub, append(append([]string{}, path...), n))
			}
		}
		if len(path) == 0 {
			return
		}
		try(append(path, hostileText)...)
		try(append(path, "--"+hostileText)...)
		c.InheritedFlags().VisitAll(func(f *pflag.Flag) { try(append(path, "--"+f.Name+"="+hostileText, capture)...) })
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { try(append(path, "--"+f.Name+"="+hostileText, capture)...) })
	}
	walk(command(known, a), nil)
	try(hostileText)
	for _, f := range []string{
		hostileText + " == 5", "frame.file == \"" + hostileText, "udp && " + hostileText,
		"riptide[" + hostileText + "] == 1", "frame.file matches \"(" + hostileText + "\"",
	} {
		try("packets", "-Y", f, capture)
		try("flows", "-Y", f, capture)
	}
	if tried < 300 {
		t.Errorf("%d command lines tried, expected 300 and more", tried)
	}
}

// repository returns the root folder of the module.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// TestHostileFiles runs each file of testdata/hostile with the command that it
// broke.
func TestHostileFiles(t *testing.T) {
	dir := filepath.Join(repository(t), "testdata", "hostile")
	capture := filepath.Join(dir, "inj.pcapng")
	for name, want := range map[string]string{
		"evil.yaml": "evil.yaml: line 3: $.messages.0.name: a name has letters, digits and _.- (ASCII) only, found U+001B " +
			"at byte 3",
		"evil2.yaml": "evil2.yaml: line 5: $.messages.0.fields[0].name: a name has letters, digits and _.- (ASCII) only, " +
			"found U+0022 at byte 2",
	} {
		t.Run(name, func(t *testing.T) {
			for _, args := range [][]string{{"packets", "-V"}, {"packets", "-V", "--json"}, {"messages"}, {"fields"}} {
				args = append(args, "--schema", filepath.Join(dir, name))
				if args[0] != "fields" {
					args = append(args, capture)
				}
				code, out, complaint := inProcess(args...)
				if code != app.ExitFailed || out != "" || !strings.HasSuffix(complaint, want+"\n") ||
					strings.Count(complaint, "\n") != 1 {
					t.Errorf("%q: exit %d, %q, %q; expected %q", args, code, out, complaint, want)
				}
			}
		})
	}
	t.Run("inj.pcapng", func(t *testing.T) {
		schema := filepath.Join(t.TempDir(), "chat.yaml")
		if err := os.WriteFile(schema, fmt.Appendf(nil, chatSchema, "chat"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, complaint := inProcess("messages", "--json", "--schema", schema, capture)
		if code != app.ExitDone || !strings.Contains(out, `\u202eRLO\u2066bidi\u200f`) ||
			!strings.Contains(out, `\u007fdel`) || !strings.Contains(out, `\udb40\udc41TAG𝓐`) {
			t.Errorf("exit %d, %s: the texts of the messages are not escaped with all their digits", code, complaint)
		}
		code, out, complaint = inProcess("packets", "-V", "--schema", schema, capture)
		if code != app.ExitDone || !strings.Contains(out, `\x1b]52;c;`) || !strings.Contains(out, `\U000e0041TAG𝓐`) ||
			forbidden(out) != "" {
			t.Errorf("exit %d, %s: %s", code, complaint, forbidden(out))
		}
	})
}

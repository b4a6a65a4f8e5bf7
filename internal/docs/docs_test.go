package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

var update = flag.Bool("update", false, "write what the commands print into the documents")

func TestMain(m *testing.M) { testenv.Main(m) }

// TestConsole runs every command that the documents show.
func TestConsole(t *testing.T) {
	shell := testenv.Need(t, "sh")
	root := testenv.Module(t)
	path := filepath.Dir(testenv.Ackscope(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
	shown := 0
	for _, name := range documents(t, root) {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			anew := rewrite(string(text), func(command, was string) string {
				shown++
				cmd := exec.Command(shell, "-c", command)
				cmd.Dir, cmd.Env = root, append(os.Environ(), "PATH="+path)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("$ %s: %v\n%s", command, err, out)
					return was
				}
				is := trimLines(string(out))
				if is != was && !*update {
					t.Errorf("$ %s\nprints\n%s\nbut the document shows\n%s", command, is, was)
				}
				return is
			})
			if *update {
				if err := os.WriteFile(filepath.Join(root, name), []byte(anew), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if shown < 5 {
		t.Errorf("the documents show %d commands in blocks marked console, expected at least 5", shown)
	}
}

// TestPicture: the picture in README.md is what the program prints.
func TestPicture(t *testing.T) { samePicture(t, "docs/picture.svg", "scripts/picture") }

// TestTUIPicture: the pictures of the terminal UI are of real sessions.
func TestTUIPicture(t *testing.T) {
	testenv.Need(t, "tmux")
	for screen, picture := range map[string]string{
		"overview": "docs/tui-overview.svg", "state": "docs/tui.svg", "ladder": "docs/tui-ladder.svg",
		"graphs": "docs/tui-graphs.svg",
	} {
		t.Run(screen, func(t *testing.T) {
			t.Parallel()
			samePicture(t, picture, "scripts/picture-tui", screen)
		})
	}
}

// samePicture compares a picture with what a script draws.
func samePicture(t *testing.T, picture string, script ...string) {
	t.Helper()
	bash, root := testenv.Need(t, "bash"), testenv.Module(t)
	path := filepath.Dir(testenv.Ackscope(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
	var said bytes.Buffer
	cmd := exec.Command(bash, script...)
	cmd.Dir, cmd.Env, cmd.Stderr = root, append(os.Environ(), "PATH="+path), &said
	is, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v: %s", script, err, said.Bytes())
	}
	same(t, picture, string(is))
}

// explained is a rule as `ackscope explain --json` prints it.
type explained struct{ Rule, Kind, Protocol, Severity, Summary, Explain string }

// explainedRules returns the rules of findings, or those of divergences.
func explainedRules(t *testing.T, kind string, least int) (rules []explained) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(testenv.Output(t, testenv.Ackscope(t), "explain", "--json"))); ; {
		var r explained
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if r.Kind == kind {
			rules = append(rules, r)
		}
	}
	if len(rules) < least {
		t.Errorf("%d rules of a %s, expected %d at least", len(rules), kind, least)
	}
	return rules
}

// TestFindings: docs/findings.md is the output of `ackscope explain` for every rule of a finding.
func TestFindings(t *testing.T) {
	var page strings.Builder
	page.WriteString("<!-- Written by go test ./internal/docs -update, from the rules themselves. -->\n\n# Findings\n\n" +
		"This page lists every finding that `ackscope findings` can report. `ackscope explain RULE` prints\n" +
		"the same text.\n\n" +
		"Each finding has a severity. An error is a fault of an endpoint's code. A warning harms the game. A\n" +
		"note is good to know.\n\n" +
		"Each finding also has a grade: certain, likely or possible. [model.md](model.md#certainty) explains\n" +
		"the grades. Where the tap itself dropped packets, a finding that concludes from a missing packet is\n" +
		"possible at most.\n")
	for _, r := range explainedRules(t, "finding", 20) {
		fmt.Fprintf(&page, "\n## %s\n\n**%s**: %s.\n\n%s\n", r.Rule, r.Severity, r.Summary, strings.TrimSpace(r.Explain))
	}
	same(t, "docs/findings.md", trimLines(page.String()))
}

// TestDivergences: docs/divergences.md is the output of `ackscope explain` for every rule of a
// divergence.
func TestDivergences(t *testing.T) {
	var page strings.Builder
	page.WriteString("<!-- Written by go test ./internal/docs -update, from the rules themselves. -->\n\n" +
		"# Divergences\n\n" +
		"This page lists every divergence that `ackscope replay` can report. `ackscope explain RULE` prints\n" +
		"the same text. [replay.md](replay.md) tells how a capture is compared with a reference.\n\n" +
		"Each divergence has a severity. An error misleads the peer, or loses contents. A warning costs\n" +
		"bandwidth or time.\n")
	protocol := ""
	for _, r := range explainedRules(t, "divergence", 70) {
		if r.Protocol != protocol {
			protocol = r.Protocol
			fmt.Fprintf(&page, "\n## %s\n", protocol)
		}
		fmt.Fprintf(&page, "\n### %s\n\n**%s**: %s.\n\n%s\n", r.Rule, r.Severity, r.Summary, strings.TrimSpace(r.Explain))
	}
	same(t, "docs/divergences.md", trimLines(page.String()))
}

// same compares a file of the repository with what it should contain, or writes it.
func same(t *testing.T, name, is string) {
	t.Helper()
	file := filepath.Join(testenv.Module(t), name)
	if *update {
		if err := os.WriteFile(file, []byte(is), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(file); err != nil || string(was) != is {
		t.Errorf("%s is not what is made now (%v): make golden, and look at the difference", name, err)
	}
}

// TestLinks: the files that the documents link to exist.
func TestLinks(t *testing.T) {
	root := testenv.Module(t)
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)|src="([^":]+)"`)
	for _, name := range append(documents(t, root), "ARCHITECTURE.md", "testdata/pcaps/README.md") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(name), m[1]+m[3])); err != nil {
				t.Errorf("%s points to %s: %v", name, m[1]+m[3], err)
			}
		}
	}
}

func documents(t *testing.T, root string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"README.md"}
	for _, f := range found {
		names = append(names, filepath.Join("docs", filepath.Base(f)))
	}
	return names
}

// rewrite replaces the output below each command of a text by what run returns.
func rewrite(text string, run func(command, was string) string) string {
	var out strings.Builder
	console := false
	command, was := "", ""
	flush := func() {
		if command != "" {
			fmt.Fprintf(&out, "$ %s\n%s", command, run(command, was))
		}
		command, was = "", ""
	}
	for l := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(l, "```"):
			flush()
			console = strings.TrimSpace(l) == "```console"
			out.WriteString(l)
		case console && strings.HasPrefix(l, "$ "):
			flush()
			command = strings.TrimSpace(l[2:])
		case command != "":
			was += l
		default:
			out.WriteString(l)
		}
	}
	return out.String()
}

// trimLines removes blanks at the ends of lines, as editors do.
func trimLines(s string) string {
	var out strings.Builder
	for l := range strings.Lines(s) {
		out.WriteString(strings.TrimRight(l, " \t\n"))
		out.WriteByte('\n')
	}
	return out.String()
}

func TestRewrite(t *testing.T) {
	const before = "text\n```console\n$ a b\nold\nlines\n$ c\n```\n$ not a command\n```sh\n$ d\n```\n"
	const after = "text\n```console\n$ a b\n[a b]\n$ c\n[c]\n```\n$ not a command\n```sh\n$ d\n```\n"
	var had []string
	got := rewrite(before, func(command, was string) string {
		had = append(had, was)
		return "[" + command + "]\n"
	})
	if got != after {
		t.Errorf("got\n%s\nexpected\n%s", got, after)
	}
	if len(had) != 2 || had[0] != "old\nlines\n" || had[1] != "" {
		t.Errorf("what stood below the commands was %q", had)
	}
}

package cli

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/labs"
	"github.com/ackscope/ackscope/internal/testenv"
)

// tree returns the commands of the program.
func tree() *cobra.Command {
	a := &app.App{Streams: app.Streams{}, Registry: known.Descriptors(), NewEndings: known.Endings, Restore: func() {}}
	return command(known, a)
}

// everyCommand calls f for each command.
func everyCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, below := range c.Commands() {
		everyCommand(below, f)
	}
}

// Every flag whose help lists its words completes these words.
func TestChoicesComplete(t *testing.T) {
	checked := 0
	everyCommand(tree(), func(c *cobra.Command) {
		c.InheritedFlags() // merges the flags of all commands
		c.Flags().VisitAll(func(f *pflag.Flag) {
			name, _ := pflag.UnquoteUsage(f)
			if !strings.Contains(name, "|") || f.Hidden {
				return
			}
			checked++
			args := append(strings.Fields(c.CommandPath())[1:], "--"+f.Name, "")
			out, _, _ := runText(append([]string{"__complete"}, args...)...)
			for word := range strings.SplitSeq(name, "|") {
				word, _, _ = strings.Cut(word, "TEXT")
				if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
					line, _, _ = strings.Cut(line, "\t")
					return line == word
				}) {
					t.Errorf("%s --%s: %q is not completed: %q", c.CommandPath(), f.Name, word, out)
				}
			}
		})
	})
	if checked < 15 {
		t.Errorf("%d flags with choices: expected more to check", checked)
	}
}

// Errors of arguments are sentences, and the usage follows.
func TestUsageErrors(t *testing.T) {
	for _, c := range []struct{ args, says, usage string }{
		{"flows --jsn x", "flows has no flag --jsn; did you mean --json?", "ackscope flows [FILE...]"},
		{"flows -k x", "flows has no flag -k", "ackscope flows"},
		{"flows --every", "--every: expected a time such as 500ms", "ackscope flows"},
		{"flows --every soon x", `--every "soon": expected a time such as`, "ackscope flows"},
		{"packets -c many x", `-c (--count) "many": expected a whole number`, "ackscope packets"},
		{"findings --mode 99 x", `--mode "99": expected three octal digits`, "ackscope findings"},
		{"anonymise x", `anonymise: expected the capture IN and the capture OUT to write, found "x"`, "ackscope anonymise"},
		{"reduce --keep stall a b c", `found "a", "b", "c"`, "ackscope reduce"},
		{"merge x", "merge: expected two captures, found 1", "ackscope merge A B"},
		{
			"compare x", "compare: expected two captures or directories, BEFORE and AFTER, found \"x\"",
			"ackscope compare BEFORE",
		},
		{"compare -r x y z", "compare: expected BEFORE and AFTER behind the command, found -r", "ackscope compare BEFORE"},
		{"thresholds x", "thresholds: expected no argument but flags, found \"x\"", "ackscope thresholds"},
		{"export csv --jsn x", "export csv has no flag --jsn; did you mean --json?", "ackscope export csv [FILE...]"},
		{"capture x", `capture: expected no argument but flags, found "x"`, "ackscope capture"},
		{"explain a b", "explain: expected one RULE, or nothing", "ackscope explain [RULE]"},
		{"lab gafer", "did you mean gaffer?", "ackscope lab PROTOCOL[:PROFILE]"},
		{"simulate gaffer --protocol srdp", "found both", "ackscope simulate [PROTOCOL[:PROFILE]]"},
		{"version now", "version: expected no argument", "ackscope version"},
	} {
		out, complaint, code := runText(strings.Fields(c.args)...)
		said, usage, _ := strings.Cut(complaint, "\n")
		if code != app.ExitFailed || out != "" || !strings.Contains(said, c.says) ||
			!strings.HasPrefix(usage, "usage: "+c.usage) || strings.Count(complaint, "\n") != 2 {
			t.Errorf("%s: exit %d, %q: expected %q and the usage %q", c.args, code, complaint, c.says, c.usage)
		}
	}
}

// A protocol and its profile are spelled alike for simulate, lab and -d.
func TestOneSpelling(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"lab gaffer:article --loss 5%", "lab gaffer --profile article --loss 5%"},
		{"lab riptide:2.0:tcp", "lab riptide --transport tcp --profile 2.0"},
		{"lab riptide:tcp", "lab riptide --transport tcp"},
		{"lab srdp:proxy --seed 2", "lab srdp --proxy udp --seed 2"},
		{"-q lab srdp:proxied-le:tcp", "-q lab srdp --proxy tcp --profile proxied-le"},
		{"lab gaffer --loss 5%", "lab gaffer --loss 5%"},
		{"lab", "lab"},
		{"flows gaffer:article", "flows gaffer:article"},
		{"simulate gaffer:article", "simulate gaffer:article"},
	} {
		if got := labs.Spelled(tree(), strings.Fields(c.line), known.Labs()); strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, expected %q", c.line, got, c.want)
		}
	}
	for _, form := range []string{"gaffer:reliable", "riptide:2.0:tcp", "srdp"} {
		_, _, older := runText("simulate", "--protocol", form, "--duration", "1s", "-w", "-")
		first, complaint, code := runText("simulate", form, "--duration", "1s", "-w", "-")
		second := output(t, "simulate", "--protocol", form, "--duration", "1s", "-w", "-")
		if code != older || first == "" || first != second {
			t.Errorf("simulate %s differs from --protocol %s: %s", form, form, complaint)
		}
	}
	// Every profile that -d completes is one that simulate and lab complete.
	for _, p := range known {
		if p.Lab == nil {
			continue
		}
		out, _, _ := runText("__complete", "lab", p.Name+":")
		for i := range p.Profiles {
			if !strings.Contains(out, p.Name+":"+p.Profiles[i].Name+"\t") {
				t.Errorf("lab does not complete %s:%s: %q", p.Name, p.Profiles[i].Name, out)
			}
		}
	}
}

// --version and version print one line.
func TestVersion(t *testing.T) {
	line := output(t, "version")
	if !regexp.MustCompile(`^ackscope .*go1\.\d+.*, \w+/\w+\n$`).MatchString(line) {
		t.Errorf("found %q", line)
	}
	if other := output(t, "--version"); other != line {
		t.Errorf("--version prints %q, version %q", other, line)
	}
}

// A listing that prints nothing says why.
func TestEmptyListings(t *testing.T) {
	plain, crypt := testenv.Capture(t, "reliable-clean.client.pcap.gz"),
		testenv.Capture(t, "yojimbo-blocks-loss30.client.pcap.gz")
	foreign := filepath.Join(t.TempDir(), "none.pcapng")
	if _, complaint, code := runText("packets", "-Y", "frame.number == 0", "-w", foreign, plain); code != 0 {
		t.Fatal(complaint)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"messages", plain}, "no messages: profile reliable has no message section: describe yours with --profiles"},
		{[]string{"messages", crypt}, "no messages: netcode is encrypted: give --keys"},
		{[]string{"messages", foreign}, "no messages: the capture has no packets"},
		{[]string{"events", foreign}, "no events: the capture has no packets"},
		{[]string{"packets", foreign}, "no packets: the capture has none"},
		{[]string{"packets", "-Y", "frame.number == 99999", plain}, "the filter let none of 2,443 packets pass"},
		{[]string{"events", "-Y", "frame.number == 99999", plain}, "the filter let none of "},
		{[]string{"findings", "-Y", "frame.number == 99999", plain}, "the filter let none of 1 finding pass"},
		{[]string{"flows", "-Y", "flow == 99", "--json", plain, plain}, "the filter let none of 2 flows pass"},
		{[]string{"flows", "-Y", "frame.number == 99999", "--json", plain}, "the filter let none of 1 flow pass"},
		{
			[]string{"export", "jsonl", "--table", "flows", "-Y", "flow == 99", "-o", "-", plain},
			"the filter let none of 1 flow pass",
		},
		{[]string{"messages", "-d", "udp.port==40000,riptide", "-Y", "frame.number == 99999", plain}, "messages pass"},
	} {
		out, complaint, code := runText(c.args...)
		if out != "" || code != app.ExitDone || strings.Count(complaint, "\n") != 1 || !strings.Contains(complaint, c.says) {
			t.Errorf("%q: exit %d, %q, %.200q: expected %q", c.args, code, complaint, out, c.says)
		}
		if _, complaint, _ := runText(append(c.args, "-q")...); complaint != "" {
			t.Errorf("%q -q: %q", c.args, complaint)
		}
	}
	var pipe bytes.Buffer
	code := runKnown([]string{"events", "--json", "-Y", "frame.number == 1", plain},
		app.Streams{In: strings.NewReader(""), Out: &pipe, Err: t.Output()})
	if code != app.ExitDone || pipe.Len() == 0 {
		t.Errorf("a listing with rows: exit %d", code)
	}
}

// TestOneListOfProfiles: -d, simulate and lab complete the same profiles. Only those without acks
// have no endpoint.
func TestOneListOfProfiles(t *testing.T) {
	completed := func(args ...string) (names []string) {
		out, _, code := runText(append([]string{"__complete"}, args...)...)
		for line := range strings.Lines(out) {
			if name, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); strings.Contains(name, ":") && name[0] != ':' {
				names = append(names, name)
			}
		}
		if code != app.ExitDone || len(names) == 0 {
			t.Fatalf("%q completes %q, status %d", args, out, code)
		}
		slices.Sort(names)
		return names
	}
	made := completed("simulate", "--protocol", "")
	var read []string
	for _, name := range completed("flows", "-d", "udp.port==7777,") {
		if name = strings.TrimPrefix(name, "udp.port==7777,"); name != "gaffer:netcode" {
			read = append(read, name)
		}
	}
	if !slices.Equal(read, made) {
		t.Errorf("-d completes\n%q, simulate\n%q", read, made)
	}
	capture := testenv.Capture(t, "reliable-clean.client.pcap.gz")
	for _, name := range made {
		if _, complaint, code := runText("flows", "-d", "udp.port==7777,"+name, "-c", "1", capture); code != app.ExitDone {
			t.Errorf("-d udp.port==7777,%s: %s", name, complaint)
		}
		if _, complaint, code := runText("simulate", "--protocol", name, "--duration", "20ms"); code != app.ExitDone {
			t.Errorf("simulate --protocol %s: %s", name, complaint)
		}
	}
}

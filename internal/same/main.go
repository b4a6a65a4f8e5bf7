// Command same compares the program's output with committed hashes. Run `make
// same` after a change that must not change a byte.
//
// It works in three steps:
//
//  1. It builds cmd/ackscope.
//  2. It runs the commands on every capture of testdata/pcaps, and on captures
//     that it simulates.
//  3. It hashes the standard output, standard error, files and exit status of
//     each run.
//
// Usage:
//
//	go run ./internal/same            compare with internal/same/hashes.txt
//	go run ./internal/same -update    write that file anew
//	go run ./internal/same -run REGEX only the subjects whose name matches
//	go run ./internal/same -show 'SUBJECT COMMAND'  print what one run writes
//
// A line of hashes.txt is a subject (a capture, or a simulated run), followed
// by COMMAND=HASH for each run. Where a hash differs, the line that names it
// says how to see both outputs.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

var (
	update = flag.Bool("update", false, "write the hashes anew")
	only   = flag.String("run", "", "subjects whose name matches this expression")
	show   = flag.String("show", "", "print what one run writes: 'SUBJECT COMMAND'")
	binary = flag.String("binary", "", "compare this program instead of building ./cmd/ackscope")
)

const hashesFile = "internal/same/hashes.txt"

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "same:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "same")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	n := &net{dir: dir, program: *binary, got: map[string]map[string]string{}}
	if n.program == "" {
		n.program = filepath.Join(dir, "ackscope")
		if out, err := exec.Command("go", "build", "-o", n.program, "./cmd/ackscope").CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	subjects, err := n.subjects()
	if err != nil {
		return err
	}
	if *show != "" {
		return n.show(subjects)
	}
	n.runAll(subjects)
	if *update {
		return n.write()
	}
	return n.compare()
}

// net runs the program and keeps the hash of every run.
type net struct {
	dir, program string
	lock         sync.Mutex
	got          map[string]map[string]string // subject, command: hash
}

// subject is one capture, or one run without a capture.
type subject struct {
	name    string
	prepare func(n *net, dir string) (string, error) // makes the capture; nil if it exists
	capture string
	runs    []command
	state   bool // run state at ten frames, which needs the capture's length
}

// command is one run of the program. In its arguments CAPTURE is the capture,
// and OUT a file that the run writes. The file is hashed too.
type command struct {
	name string
	args []string
}

func cmd(name string, args ...string) command { return command{name, args} }

// onCapture are the runs over each capture.
var onCapture = []command{
	cmd("flows", "flows", "CAPTURE"),
	cmd("flows.json", "flows", "--json", "CAPTURE"),
	cmd("packets", "packets", "CAPTURE"),
	cmd("packets.tree", "packets", "-V", "-x", "-c", "40", "CAPTURE"),
	cmd("packets.json", "packets", "--json", "CAPTURE"),
	cmd("events", "events", "CAPTURE"),
	cmd("events.json", "events", "--json", "CAPTURE"),
	cmd("findings", "findings", "CAPTURE"),
	cmd("findings.json", "findings", "--json", "CAPTURE"),
	cmd("messages", "messages", "CAPTURE"),
	cmd("messages.json", "messages", "--json", "CAPTURE"),
	cmd("replay", "replay", "CAPTURE"),
	cmd("matrix.json", "replay", "--matrix", "--json", "CAPTURE"),
	cmd("report", "report", "-o", "OUT", "CAPTURE"),
	cmd("markdown", "report", "--format", "markdown", "CAPTURE"),
	cmd("ledger.json", "ledger", "--json", "CAPTURE"),
	cmd("autopsy", "autopsy", "CAPTURE"),
	cmd("export.flows", "export", "csv", "--table", "flows", "-o", "OUT", "CAPTURE"),
	cmd("export.pcapng", "export", "pcapng", "-o", "OUT", "CAPTURE"),
	cmd("export.qlog", "export", "qlog", "-o", "OUT", "CAPTURE"),
}

func (n *net) subjects() ([]subject, error) {
	var list []subject
	captures, err := filepath.Glob("testdata/pcaps/*.pcap*")
	if err != nil {
		return nil, err
	}
	if len(captures) == 0 {
		return nil, errors.New("no captures in testdata/pcaps: run it from the root of the repository")
	}
	for _, c := range captures {
		if strings.HasSuffix(c, ".replay") {
			continue
		}
		list = append(list, subject{name: filepath.Base(c), capture: c, runs: onCapture, state: true})
	}
	list = append(list, simulated()...)
	list = append(list, alone()...)
	if *only != "" {
		want, err := regexp.Compile(*only)
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(s subject) bool { return !want.MatchString(s.name) })
	}
	return list, nil
}

// simulated returns the subjects whose captures are simulated: ten seeds of
// each protocol, over UDP, TCP and proxies. Some of them have faults.
func simulated() (list []subject) {
	kinds := []struct {
		name string
		args []string
	}{
		{"gaffer", []string{"--protocol", "gaffer:reliable"}},
		{"article", []string{"--protocol", "gaffer:article"}},
		{"messages", []string{"--protocol", "gaffer:article-messages", "--messages", "20"}},
		{"riptide", []string{"--protocol", "riptide:2.2.1"}},
		{"riptide-tcp", []string{"--protocol", "riptide:2.1.0:tcp"}},
		{"srdp", []string{"--protocol", "srdp", "--services", "any", "--clients", "3"}},
		{"srdp-proxied", []string{"--protocol", "srdp:proxied", "--services", "any"}},
		{"srdp-le", []string{"--protocol", "srdp:direct-le", "--services", "order", "--clients", "2"}},
	}
	faults := map[string][]string{
		"gaffer": {
			"", "ack-gaps", "", "sequence-skipped", "", "ack-bit-off-by-one", "", "stale-entry-kept", "",
			"fragments-reversed",
		},
		"riptide": {"", "window-shift", "", "ack-missing", "", "resend-early", "", "sequence-skipped", "", "rtt-doubled"},
		"srdp":    {"", "ack-missing", "", "resend-early", "", "id-skipped", "", "resend-changed", "", "ack-twice"},
	}
	for _, k := range kinds {
		for seed := range 10 {
			args := append([]string{"simulate"}, k.args...)
			args = append(args, "--seed", strconv.Itoa(seed+1), "--duration", "6s", "--loss",
				[]string{"0%", "5%", "20%", "40%", "10%/2%"}[seed%5],
				"--delay", "20ms", "--jitter", []string{"0ms", "5ms", "30ms"}[seed%3], "--dup", []string{"0%", "3%"}[seed%2],
				"--tap", []string{"a", "b", "between"}[seed%3])
			name := fmt.Sprintf("simulated-%s-%d", k.name, seed+1)
			if of := faults[k.name]; of != nil && of[seed] != "" {
				args = append(args, "--fault", of[seed])
			}
			list = append(list,
				subject{name: name, runs: onCapture, state: true, prepare: func(n *net, dir string) (string, error) {
					w := filepath.Join(dir, name+".pcapng")
					full := append(slices.Clone(args), "-w", w, "--truth", filepath.Join(dir, "truth.jsonl"), "--journal",
						filepath.Join(dir, "journal.jsonl"))
					out := n.output(dir, full, w, filepath.Join(dir, "truth.jsonl"), filepath.Join(dir, "journal.jsonl"))
					n.keep(name, "simulate", out)
					n.keep(name, "play", n.output(dir, []string{"simulate", "--play", filepath.Join(dir, "journal.jsonl")}))
					return w, nil
				}})
		}
	}
	return list
}

// alone returns the runs that need no capture, or one certain capture: help,
// filters, formats, what-if, merge, and errors.
func alone() (list []subject) {
	const gaffer, riptide = "testdata/pcaps/reliable-loss10.client.pcap.gz", "testdata/pcaps/u210_loss10.client.pcapng.gz"
	add := func(name string, runs ...command) { list = append(list, subject{name: name, runs: runs}) }
	var helps []command
	for _, c := range []string{
		"", "anonymise", "autopsy", "capture", "events", "explain", "export", "export csv",
		"export jsonl", "export parquet", "export pcapng", "export qlog", "export wireshark", "fields", "findings", "flows",
		"graph", "guess", "lab", "lab gaffer", "lab riptide", "lab srdp", "ledger", "merge", "messages", "packets",
		"protocols", "reduce", "replay", "report", "schema", "simulate", "state", "tui",
	} {
		helps = append(helps, command{"help." + strings.ReplaceAll(c, " ", "."), append(strings.Fields(c), "--help")})
	}
	add("help", helps...)
	add("lists",
		cmd("fields", "fields"), cmd("fields.json", "fields", "--json"), cmd("explain", "explain"),
		cmd("explain.json", "explain", "--json"),
		cmd("protocols", "protocols"), cmd("protocols.gaffer", "protocols", "gaffer"),
		cmd("protocols.riptide", "protocols", "riptide"), cmd("protocols.srdp", "protocols", "srdp"),
		cmd("schema", "schema"), cmd("faults", "simulate", "--fault", "list"), cmd("completion", "completion", "bash"))
	filters := []string{
		"gaffer.ack_bits == 0x3fff", "flow.rtt > 60ms", "rel.lost", "rel.acked && frame.len > 100",
		"gaffer.sequence in {900..910}", "udp.port == 30000 || tcp",
		"flow.side == \"a\" && rel.rtt > 70ms", "finding.rule == \"loss-burst\"", "message.hol > 10ms",
		"frame.number % 7 == 3", "not (rel.lost or rel.duplicate)", "gaffer.ack_bits & 0x1 == 0",
	}
	var filtered []command
	for i, f := range filters {
		for _, c := range []string{"packets", "events", "messages"} {
			filtered = append(filtered, cmd(fmt.Sprintf("%s.%d", c, i), c, "-Y", f, gaffer),
				cmd(fmt.Sprintf("%s.riptide.%d", c, i), c, "-Y", f, riptide))
		}
	}
	add("filters", filtered...)
	add("formats",
		cmd("fields", "packets", "-T", "fields", "-e", "frame.number", "-e", "gaffer.sequence", "-E", "header=y", gaffer),
		cmd("json", "packets", "-T", "json", "-c", "20", gaffer), cmd("ek", "packets", "-T", "ek", "-c", "20", riptide),
		cmd("tabs", "packets", "-T", "tabs", gaffer),
		cmd("graph.timeseq", "graph", gaffer), cmd("graph.rtt", "graph", "-k", "rtt", gaffer),
		cmd("graph.window", "graph", "-k", "window", riptide), cmd("graph.bandwidth", "graph", "-k", "bandwidth", riptide),
		cmd("graph.svg", "graph", "-k", "rtt", "-o", "-", gaffer), cmd("diff", "state", "--diff", "300", "301", gaffer),
		cmd("state.json", "state", "--at", "300", "--json", gaffer),
		cmd("parquet", "export", "parquet", "--table", "events", "-o", "OUT", gaffer),
		cmd("wireshark", "export", "wireshark", "-o", "OUT", gaffer),
		cmd("merge", "merge", gaffer, "testdata/pcaps/reliable-loss10.server.pcap.gz"),
		cmd("merge.json", "merge", "--json", gaffer, "testdata/pcaps/reliable-loss10.server.pcap.gz"),
		cmd("whatif.gaffer", "replay", "--what-if", "resend=50ms", gaffer),
		cmd("whatif.riptide", "replay", "--what-if", "resend=50ms", riptide), cmd("guess", "guess", riptide),
		cmd("write", "packets", "-Y", "gaffer.sequence < 40", "-w", "OUT", gaffer))
	add("errors",
		cmd("nofile", "flows", "testdata/none.pcap"), cmd("nocapture", "flows", "go.mod"), cmd("nocommand", "flow"),
		cmd("noflag", "flows", "--nothing"),
		cmd("filter", "packets", "-Y", "gaffer.sequence ==", gaffer),
		cmd("field", "packets", "-Y", "gaffer.sequnce == 1", gaffer), cmd("frame", "state", "--at", "99999999", gaffer),
		cmd("flow", "state", "--flow", "77", gaffer), cmd("decode", "flows", "-d", "udp.port==1", gaffer),
		cmd("vantage", "flows", "--vantage", "c", gaffer), cmd("rule", "explain", "no-such-rule"),
		cmd("fault", "simulate", "--fault", "nothing"), cmd("protocol", "simulate", "--protocol", "gaffer:nothing"),
		cmd("whatif", "replay", "--what-if", "x=1", gaffer), cmd("reduce", "reduce", "--keep", "stale-entry", gaffer, "OUT"))
	return list
}

func (n *net) runAll(subjects []subject) {
	work := make(chan subject)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for s := range work {
				n.runSubject(s)
			}
		})
	}
	for _, s := range subjects {
		work <- s
	}
	close(work)
	wait.Wait()
}

func (n *net) runSubject(s subject) {
	dir, err := os.MkdirTemp(n.dir, "run")
	if err != nil {
		n.keep(s.name, "tempdir", []byte(err.Error()))
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	capture := s.capture
	if s.prepare != nil {
		if capture, err = s.prepare(n, dir); err != nil {
			n.keep(s.name, "prepare", []byte(err.Error()))
			return
		}
	}
	for _, c := range s.runs {
		n.keep(s.name, c.name, n.one(dir, capture, c))
	}
	if s.state {
		n.states(s, dir, capture)
	}
}

// one returns everything that one run writes.
func (n *net) one(dir, capture string, c command) []byte {
	out := filepath.Join(dir, "out")
	if err := os.RemoveAll(out); err != nil {
		return []byte(err.Error())
	}
	args := slices.Clone(c.args)
	for i, a := range args {
		switch a {
		case "CAPTURE":
			args[i] = capture
		case "OUT":
			args[i] = out
		}
	}
	return n.output(dir, args, out)
}

// statesAt is the number of frames of a capture at which the state is printed.
const statesAt = 10

func (n *net) states(s subject, dir, capture string) {
	numbers := bytes.Fields(n.output(dir, []string{"packets", "-q", "-T", "fields", "-e", "frame.number", capture}))
	frames := 0
	for _, f := range numbers {
		if v, err := strconv.Atoi(string(f)); err == nil {
			frames = max(frames, v)
		}
	}
	h := sha256.New()
	for i := range statesAt {
		h.Write(n.output(dir, []string{"state", "--at", strconv.Itoa(1 + i*max(frames-1, 0)/(statesAt-1)), capture}))
	}
	n.keep(s.name, "states", h.Sum(nil))
}

// output runs the program. It returns its standard output, standard error, exit
// status and written files as one text.
func (n *net) output(dir string, args []string, files ...string) []byte {
	c := exec.Command(n.program, args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	c.Env = append(os.Environ(), "NO_COLOR=1", "COLUMNS=120", "TZ=UTC", "GOMAXPROCS=1")
	err := c.Run()
	var b bytes.Buffer
	b.Write(stdout.Bytes())
	fmt.Fprintf(&b, "\n-- stderr\n%s\n-- %v\n", stderr.Bytes(), err)
	for _, f := range files {
		err := filepath.WalkDir(f, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			fmt.Fprintf(&b, "-- %s\n%s", filepath.Base(path), text)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(&b, "-- %v\n", err)
		}
	}
	// The folder of this run has a random name.
	return bytes.ReplaceAll(b.Bytes(), []byte(dir), []byte("DIR"))
}

func (n *net) keep(subject, command string, output []byte) {
	sum := sha256.Sum256(output)
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.got[subject] == nil {
		n.got[subject] = map[string]string{}
	}
	n.got[subject][command] = hex.EncodeToString(sum[:6])
}

func (n *net) write() error {
	var b strings.Builder
	names := make([]string, 0, len(n.got))
	for s := range n.got {
		names = append(names, s)
	}
	slices.Sort(names)
	for _, s := range names {
		b.WriteString(s)
		commands := make([]string, 0, len(n.got[s]))
		for c := range n.got[s] {
			commands = append(commands, c)
		}
		slices.Sort(commands)
		for _, c := range commands {
			b.WriteString(" " + c + "=" + n.got[s][c])
		}
		b.WriteByte('\n')
	}
	return os.WriteFile(hashesFile, []byte(b.String()), 0o644)
}

func (n *net) compare() error {
	b, err := os.ReadFile(hashesFile)
	if err != nil {
		return fmt.Errorf("%w: write it with -update", err)
	}
	runs, differ := 0, 0
	want := map[string]map[string]string{}
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		want[words[0]] = map[string]string{}
		for _, w := range words[1:] {
			c, h, _ := strings.Cut(w, "=")
			want[words[0]][c] = h
		}
	}
	for s, commands := range n.got {
		for c, h := range commands {
			if runs++; want[s][c] != h {
				differ++
				fmt.Printf("differs: -show '%s %s'\n", s, c)
			}
		}
	}
	if *only == "" {
		for s, commands := range want {
			for c := range commands {
				if n.got[s][c] == "" {
					differ++
					fmt.Printf("not run any more: %s %s\n", s, c)
				}
			}
		}
	}
	fmt.Printf("%d runs of the program over %d subjects, %d differ\n", runs, len(n.got), differ)
	if differ > 0 {
		return fmt.Errorf("%d runs write something else than %s has", differ, hashesFile)
	}
	return nil
}

func (n *net) show(subjects []subject) error {
	name, want, _ := strings.Cut(*show, " ")
	for _, s := range subjects {
		if s.name != name {
			continue
		}
		capture := s.capture
		if s.prepare != nil {
			var err error
			if capture, err = s.prepare(n, n.dir); err != nil {
				return err
			}
		}
		for _, c := range s.runs {
			if c.name == want {
				_, err := os.Stdout.Write(n.one(n.dir, capture, c))
				return err
			}
		}
	}
	return fmt.Errorf("-show %q: expected a subject and a command of %s", *show, hashesFile)
}

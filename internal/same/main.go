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

// Command prose holds comments and documents to plain English.
//
//	go run ./internal/prose                 # the whole repository
//	go run ./internal/prose machine/gaffer  # one folder and all below it
//
// It prints a line for each place that breaks a rule:
//
//	machine/gaffer/state.go:17: sentence of 31 words: "A packet that …"
//	machine/gaffer/state.go:40: "courier": say what carried a message
//	docs/model.md:12: line of 131 columns: expected at most 100
//
// The rules are the limits and the glossary of this package. TestProse holds the
// repository to them. `go run ./internal/prose -sum` prints the words and the
// longest sentence of each file.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	sum := flag.Bool("sum", false, "print words and the longest sentence of each file, and no faults")
	flag.Parse()
	files, err := tracked(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	faults := 0
	for _, name := range files {
		r, err := readFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "prose:", err)
			os.Exit(2)
		}
		if *sum {
			fmt.Printf("%6d words  longest sentence %3d  %s\n", r.words, r.longest, name)
			continue
		}
		for _, f := range r.faults {
			fmt.Printf("%s:%d: %s\n", name, f.line, f.text)
		}
		faults += len(r.faults)
	}
	if faults > 0 {
		fmt.Printf("%d places\n", faults)
		os.Exit(1)
	}
}

// tracked returns the Go files and documents that git knows below the given
// folders; all of them without any. Generated documents are left out.
func tracked(below []string) ([]string, error) {
	var out, errs bytes.Buffer
	git := exec.Command("git", append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"},
		below...)...)
	git.Stdout, git.Stderr = &out, &errs
	if err := git.Run(); err != nil {
		return nil, fmt.Errorf("git ls-files: %w: %s", err, errs.Bytes())
	}
	var files []string
	for name := range strings.SplitSeq(out.String(), "\x00") {
		document := strings.HasSuffix(name, ".md") && !slices.Contains(generated, name)
		if document || strings.HasSuffix(name, ".go") {
			if _, err := os.Stat(name); err == nil {
				files = append(files, name)
			}
		}
	}
	return files, nil
}

// readFile checks one file by its kind.
func readFile(name string) (*reading, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(name, ".md") {
		return readDocument(name, string(text)), nil
	}
	return readGo(name, text), nil
}

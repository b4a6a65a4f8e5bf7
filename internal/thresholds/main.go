// Command thresholds writes docs/thresholds.md: each number that the machines compare
// with, what it rests on, and how far off it may be.
//
//	go run ./internal/thresholds            write the page from the sources and the margins
//	go run ./internal/thresholds -measure   measure the margins first: see measure.go
//
// The page is a golden file. The test of this package fails where a number has no source. It
// fails where a measured one has a margin below Least, and where the page is out of date.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ackscope/ackscope/internal/thresholds/constants"
)

const (
	page        = "docs/thresholds.md"
	marginsFile = "internal/thresholds/margins.txt"
)

func main() {
	measuring := flag.Bool("measure", false, "measure the margins first, which takes minutes")
	only := flag.String("run", "", "measure only the constants whose key matches this expression")
	flag.Parse()
	if err := run(*measuring, *only); err != nil {
		fmt.Fprintln(os.Stderr, "thresholds:", err)
		os.Exit(1)
	}
}

func run(measuring bool, only string) error {
	const root = "."
	tree, err := constants.Read(root)
	if err != nil {
		return err
	}
	if len(tree.Constants) == 0 {
		return fmt.Errorf("no constants in machine/: run it from the root of the repository")
	}
	if measuring {
		if err := measure(root, only); err != nil {
			return err
		}
	}
	margins, err := readMargins(filepath.Join(root, marginsFile))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, page), []byte(table(tree, margins)), 0o644)
}

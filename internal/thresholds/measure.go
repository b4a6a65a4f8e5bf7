package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ackscope/ackscope/internal/thresholds/constants"
)

// measure runs the tests that measure, and writes their margins beside those of the
// constants that were left out.
//
// The tests are those of package internal/truth, built over sources in which each
// measured constant is a variable (constants.Overlay). They scale one at a time, and
// hold what ackscope then says against the endpoints' logs.
func measure(root, only string) error {
	dir, err := os.MkdirTemp("", "thresholds")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	absolute, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	tree, err := constants.Read(absolute)
	if err != nil {
		return err
	}
	overlay, err := tree.Overlay(dir)
	if err != nil {
		return err
	}
	tests := filepath.Join(dir, "truth.test")
	build := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", tests, "./internal/truth")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c ./internal/truth: %w\n%s", err, out)
	}
	values := map[string]string{}
	var names []string // of the tests
	for _, c := range tree.Constants {
		if c.Kind != constants.Measured {
			continue
		}
		if _, known := values["test "+c.Rests]; !known {
			values["test "+c.Rests] = ""
			names = append(names, c.Rests)
		}
		values[c.Key()] = c.Value
	}
	margins, err := readMargins(filepath.Join(root, marginsFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if margins == nil {
		margins = map[string]margin{}
	}
	for key := range margins {
		if _, known := values[key]; !known {
			delete(margins, key)
		}
	}
	// What measures must be able to fail.
	if err := runTest(root, tests, "TestMarginsCatch"); err != nil {
		return err
	}
	done := make(chan error)
	for _, name := range names {
		go func() {
			done <- runTest(root, tests, name, "ACKSCOPE_MARGINS="+filepath.Join(dir, name), "ACKSCOPE_MARGINS_OF="+only)
		}()
	}
	for range names {
		err = errors.Join(err, <-done)
	}
	if err != nil {
		return err
	}
	fresh := map[string]margin{}
	for _, name := range names {
		if err := takeMargins(filepath.Join(dir, name), values, fresh); err != nil {
			return err
		}
	}
	maps.Copy(margins, fresh)
	return writeMargins(filepath.Join(root, marginsFile), margins)
}

// runTest runs a test of the package that measures, in its folder.
func runTest(root, tests, name string, variables ...string) error {
	run := exec.Command(tests, "-test.run", "^"+name+"$", "-test.v", "-test.timeout", "2h")
	run.Dir = filepath.Join(root, "internal", "truth")
	run.Env = append(append(os.Environ(), "GOGC=300"), variables...)
	run.Stdout, run.Stderr = os.Stderr, os.Stderr
	if err := run.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// takeMargins reads what a test has measured, a JSON object a line.
func takeMargins(path string, values map[string]string, to map[string]margin) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		var m margin
		if err := json.Unmarshal(s.Bytes(), &m); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		m.Value = values[m.Key]
		if of, measured := to[m.Key]; measured { // with another protocol: the least counts
			if of.least() < m.least() {
				m.Why = of.Why
			}
			m.Down, m.Up, m.Moved = min(m.Down, of.Down), min(m.Up, of.Up), m.Moved+max(of.Moved, 0)
		}
		to[m.Key] = m
	}
	return s.Err()
}

package batching

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/cli/app"
)

// passed are the flags that a worker has from the command, since they decide what it finds.
var passed = []string{
	"decode-as", "keys", "profiles", "schema", "thresholds", "set", "memory", "vantage", "packets", "mode",
}

// passedFlags returns these flags as they were given.
func passedFlags(c *cobra.Command) (args []string) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(passed, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			args = append(args, "--"+f.Name+"="+v)
		}
	})
	return args
}

// starter returns what starts a worker: this program, as a process of its own.
func starter(a *app.App, c *cobra.Command, f *flags, captures int) func() (batch.Worker, error) {
	args := append([]string{"batch", "--worker", "--output=" + f.out}, passedFlags(c)...)
	threads := max(1, f.threads/max(1, captures))
	complaints := a.Err
	if _, file := complaints.(*os.File); !file { // a process writes to a file itself
		complaints = &oneByOne{to: complaints}
	}
	return func() (batch.Worker, error) {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		command := exec.Command(program, args...)
		// A worker analyses one capture. More threads of its collector would only take turns with the
		// other workers.
		command.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(threads))
		command.Stderr = complaints
		return batch.StartProcess(command)
	}
}

// oneByOne is a writer that several workers share. It passes on one Write at a time.
type oneByOne struct {
	mu sync.Mutex
	to io.Writer
}

func (w *oneByOne) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// fingerprint returns a text that differs for versions and options that may make other rows.
func fingerprint(a *app.App, c *cobra.Command) (string, error) {
	version, err := app.BuildIdentity()
	if err != nil {
		return "", err
	}
	parts := append([]string{version}, passedFlags(c)...)
	files := append([]string{a.Flags.Keys, a.Flags.Schema, a.Flags.Thresholds}, a.Flags.Profiles...)
	for _, path := range files {
		if path == "" {
			continue
		}
		sum, err := hashFile(path)
		if err != nil {
			return "", err
		}
		parts = append(parts, sum)
	}
	return strings.Join(parts, "\x00"), nil
}

// hashFile returns the hash of a file's bytes.
func hashFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("it was read before: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

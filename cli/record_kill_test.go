//go:build unix

package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// After kill -9 each file under a name of its own is whole, and has its description. A temporary file may stay behind;
// it does not disturb the next run, nor the commands that read the folder.
func TestRecorderKilled(t *testing.T) {
	piece := pieceOf(t, "gaffer:reliable", "--seed", "7", "--duration", "60s", "--outage", "2s,500ms,2s")
	path := writtenCapture(t, piece.frames)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for kills := 1; kills <= 6; kills++ {
		folder := t.TempDir()
		cmd := exec.Command("ackscope", "capture", "-q", "-r", "-", "--on", "note", "--keep", "2s", "--after", "1s", "-w",
			folder)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = in.Write(text) }() // it fails when the program is killed
		waitFor(t, "recordings", func() bool {
			names, err := filepath.Glob(filepath.Join(folder, "*.pcapng"))
			return err == nil && len(names) >= kills
		})
		time.Sleep(time.Duration(kills) * 700 * time.Microsecond) // other moments of writing
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		for _, name := range names {
			switch {
			case strings.HasSuffix(name, ".pcapng"):
				whole++
				// framesIn fails where the file is cut.
				if n := len(framesIn(t, filepath.Join(folder, name))); n == 0 {
					t.Errorf("%s is empty", name)
				}
				if !slices.Contains(names, strings.TrimSuffix(name, ".pcapng")+".json") {
					t.Errorf("%s has no description", name)
				}
			case strings.HasSuffix(name, ".json"), strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".part"):
			default:
				t.Errorf("%s: expected a recording or a temporary file", name)
			}
		}
		output(t, "findings", "-q", folder)
		output(t, "capture", "-q", "-r", path, "--on", "loss-burst", "-w", folder)
	}
	if whole < 6 {
		t.Errorf("%d files: expected more to check", whole)
	}
}

// SIGUSR1 records all flows as they are at that moment.
func TestRecorderSignal(t *testing.T) {
	path := writtenCapture(t, pieceOf(t, "gaffer:reliable", "--duration", "5s").frames)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cmd := exec.Command("ackscope", "capture", "-r", "-", "--on", "SIGUSR1", "--keep", "2s", "-w", folder)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // it has ended, unless the test failed
	if _, err := in.Write(text[:len(text)*3/4]); err != nil {
		t.Fatal(err)
	}
	// The pipe is read to there once it is empty: another byte more than it holds must fit.
	if _, err := in.Write(text[len(text)*3/4 : len(text)*3/4+1]); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // the signal is looked at five times a second
	if _, err := in.Write(text[len(text)*3/4+1:]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	list := recordingsIn(t, folder)
	if len(list) != 1 || list[0].On != "SIGUSR1" || !list[0].All || list[0].Frames < 100 || list[0].Again != nil {
		t.Fatalf("expected one recording of all flows, found %+v", list)
	}
}

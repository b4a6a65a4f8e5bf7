//go:build unix

package outfile

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSecondWriterIsRefused uses one Outputs for each of two runs. Locks work
// between open files, as between processes.
func TestSecondWriterIsRefused(t *testing.T) {
	path := put(t, filepath.Join(t.TempDir(), "x"), "old", 0o600)
	for range 2 { // first with an existing file, then with one of our own
		first, err := (&Outputs{}).Stream(path, Payload)
		if err != nil {
			t.Fatal(err)
		}
		write(t, first, "one")
		for kind := range kinds(nil) {
			if _, err := kinds(&Outputs{})[kind](path, Payload); err == nil ||
				!strings.Contains(err.Error(), "another process writes this file") {
				t.Errorf("%s: %v, expected a refusal", kind, err)
			}
		}
		write(t, first, " two")
		if err := first.Commit(); err != nil {
			t.Fatal(err)
		}
		holds(t, path, "one two", 0o600)
	}
	// A whole file that began before the stream does not take its name away.
	whole, err := (&Outputs{}).Whole(path, Payload)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := (&Outputs{}).Stream(path, Payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.Commit(); err == nil {
		t.Error("a whole file replaced one that is being written")
	}
	write(t, stream, "kept")
	if err := stream.Commit(); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "kept", 0o600)
	alone(t, filepath.Dir(path), "x")
}

// TestManyWriters: of many processes that want one file, never two have it. The
// one that has it writes the file of that name, though each replaces the one
// before.
func TestManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var holders, turns atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				f, err := (&Outputs{}).Stream(path, Payload)
				if err != nil {
					continue // another one has it
				}
				turns.Add(1)
				if holders.Add(1) != 1 {
					t.Error("two writers have one file")
				}
				own, ownErr := f.file.Stat()
				named, err := os.Lstat(path)
				if ownErr != nil || err != nil || !os.SameFile(own, named) {
					t.Error("the file that is written has lost its name")
				}
				holders.Add(-1)
				if err := f.Commit(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if turns.Load() == 0 {
		t.Error("nobody got the file, expected somebody to get it when it is free")
	}
	alone(t, filepath.Dir(path), "x")
}

// TestNotRegular: a target that is not a regular file is opened directly.
func TestNotRegular(t *testing.T) {
	for kind := range kinds(nil) {
		folder := t.TempDir()
		fifo, null := filepath.Join(folder, "fifo"), filepath.Join(folder, "null")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/dev/null", null); err != nil { // a link to a device counts as the device
			t.Fatal(err)
		}
		// Open for both directions, so that no side waits for the other end.
		end, err := os.OpenFile(fifo, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer end.Close()
		o := &Outputs{NoClobber: true}
		for _, path := range []string{fifo, null, "/dev/null"} {
			f, err := kinds(o)[kind](path, Payload)
			if err != nil {
				t.Fatalf("%s: %s: %v", kind, path, err)
			}
			write(t, f, "said")
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		b := make([]byte, 4)
		if _, err := end.Read(b); err != nil || string(b) != "said" {
			t.Errorf("%s: the FIFO gave %q, %v", kind, b, err)
		}
		alone(t, folder, "fifo", "null")
	}
}

// TestDescriptors: a descriptor is written from its current position on,
// whatever it refers to.
func TestDescriptors(t *testing.T) {
	for kind := range kinds(nil) {
		path := put(t, filepath.Join(t.TempDir(), "log"), "before,", 0o644)
		log, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		reading, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer reading.Close()
		o := &Outputs{NoClobber: true}
		for _, folder := range []string{"/dev/fd", "/proc/self/fd", "/dev/../dev/fd"} {
			f, err := kinds(o)[kind](folder+"/"+itoa(log), Payload)
			if err != nil {
				t.Fatal(err)
			}
			write(t, f, "more,")
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		holds(t, path, "before,more,more,more,", 0o644)
		if _, err := kinds(o)[kind]("/dev/fd/"+itoa(reading), Payload); err == nil ||
			!strings.Contains(err.Error(), "reading only") {
			t.Errorf("%s: %v, expected a refusal", kind, err)
		}
		o.Reads("the capture to be read", path)
		if _, err := kinds(o)[kind]("/dev/fd/"+itoa(log), Payload); err == nil ||
			!strings.Contains(err.Error(), "the capture to be read") {
			t.Errorf("%s: %v, expected a refusal", kind, err)
		}
	}
}

func TestRow(t *testing.T) {
	folder := t.TempDir()
	victim, name := put(t, filepath.Join(folder, "victim"), "old", 0o644), filepath.Join(folder, "row_00001.pcapng")
	if err := os.Symlink(victim, name); err != nil {
		t.Fatal(err)
	}
	o := &Outputs{}
	f, err := o.Row(name, Payload)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f, "one")
	if f.Path() == name || filepath.Ext(f.Path()) != ".pcapng" || filepath.Dir(f.Path()) != folder {
		t.Errorf("the row's file is %s", f.Path())
	}
	if _, err := (&Outputs{}).Stream(f.Path(), Payload); err == nil {
		t.Error("a file of a row is not locked")
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	holds(t, f.Path(), "one", 0o600)
	holds(t, victim, "old", 0o644)
	if err := f.Made().Remove(); err != nil {
		t.Fatal(err)
	}
	alone(t, folder, filepath.Base(name), "victim")
	// A file of another process stays, even under the same name.
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if f, err = o.Row(name, Payload); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name, filepath.Join(folder, "moved")); err != nil { // its inode stays in use
		t.Fatal(err)
	}
	put(t, name, "theirs", 0o644)
	if err := f.Made().Remove(); err != nil {
		t.Fatal(err)
	}
	holds(t, name, "theirs", 0o644)
}

//go:build unix

package ring

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
)

// folderVariable has the test program write a ring there until it is killed.
const folderVariable = "ACKSCOPE_RING_TEST_FOLDER"

// TestWriter is the program that TestKilledWriter kills.
func TestWriter(t *testing.T) {
	folder := os.Getenv(folderVariable)
	if folder == "" {
		return // it is a program, and no test
	}
	r, err := Open(folder, small())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		for _, f := range numbered(i, 1, 100+i%900) {
			if err := r.Write(f); err != nil {
				t.Fatal(err)
			}
		}
		if i%3 == 0 {
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if i == 1000 {
			os.Stdout.WriteString("written\n")
		}
	}
}

// TestKilledWriter kills a writer. The next ring has all of its frames without a hole, up to the
// kill, and goes on with numbers and bounds.
func TestKilledWriter(t *testing.T) {
	folder, next := t.TempDir(), 0
	for round := range 3 {
		c := exec.Command(os.Args[0], "-test.run", "^TestWriter$")
		c.Env = append(os.Environ(), folderVariable+"="+folder)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("written\n"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(round) * 3 * time.Millisecond)
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // it was killed
		r := open(t, folder, small())
		_, list, _ := cut(t, r, Span{From: start, To: at(time.Hour)})
		if len(list) == 0 {
			t.Fatal("no frames are left")
		}
		holes := 0
		for i := 1; i < len(list); i++ {
			if list[i].At != list[i-1].At.Add(time.Millisecond) {
				holes++ // where a later run began at 0 again
			}
		}
		if holes > round {
			t.Errorf("round %d: %d holes", round, holes)
		}
		files, size := onDisk(t, folder)
		if size > smallest || r.row.number <= next {
			t.Errorf("round %d: %d files of %d bytes, up to number %d", round, files, size, r.row.number)
		}
		next = r.row.number
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCutAtEveryByte ends a ring's file at each of its bytes. All whole frames before it are found,
// and the cut says that the file ends early.
func TestCutAtEveryByte(t *testing.T) {
	from := t.TempDir()
	r := open(t, from, small())
	all := numbered(0, 12, 60)
	write(t, r, all...)
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(r.files[0].path)
	whole, err := os.ReadFile(r.files[0].path)
	if err != nil {
		t.Fatal(err)
	}
	most, cuts := 0, 0
	for n := range len(whole) {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, name), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		next := open(t, folder, small())
		write(t, next, numbered(100, 1, 60)...)
		c, list, _ := cut(t, next, Span{From: start, To: at(100 * time.Millisecond)})
		have := len(list) - 1
		if have < most {
			t.Fatalf("%d bytes: %d frames, and %d of fewer bytes", n, have, most)
		}
		most = have
		same(t, list[:have], all[:have])
		text := reasons(c)
		if strings.Contains(text, "within a record") {
			cuts++
		} else if n > 0 && have == 0 && !strings.Contains(text, "cannot be read") && n < 28 {
			t.Errorf("%d bytes: missing: %q", n, text)
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if most != len(all)-1 || cuts < len(whole)/2 {
		t.Errorf("at most %d of %d frames; %d of %d cuts are named", most, len(all), cuts, len(whole))
	}
}

// TestForeignFiles: what is not of the ring is neither read nor removed. What only has the name of
// its files costs no more than its place.
func TestForeignFiles(t *testing.T) {
	folder, outside := t.TempDir(), filepath.Join(t.TempDir(), "precious.pcapng")
	put := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("notes.txt", []byte("x"))
	put("ring_00001_20261121130500.pcap", []byte("x"))
	put("ring_999999999999999_20261121130500.pcapng", []byte("x"))
	if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "ring_00002_20261121130500.pcapng")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "ring_00003_20261121130500.pcapng"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "ring_00004_20261121130500.pcapng"), 0o700); err != nil {
		t.Fatal(err)
	}
	hostile := bytes.Repeat([]byte{0x0a, 0x0d, 0x0d, 0x0a, 0xff, 0xff, 0xff, 0x7f, 0x4d, 0x3c, 0x2b, 0x1a}, 500)
	put("ring_00005_20261121130500.pcapng", hostile)
	put("ring_00006_20261121130500.pcapng", []byte("no capture at all"))
	put("ring_00006_20261121130501.pcapng", nil) // the same number, and killed at once

	r := open(t, folder, small())
	if s := r.Status(); s.Foreign != 6 || s.Files != 3 {
		t.Fatalf("status %+v", s)
	}
	all := numbered(0, 100, 100)
	write(t, r, all...)
	c, list, _ := cut(t, r, Span{From: at(-time.Hour), To: all[99].At})
	same(t, list, all)
	if got := reasons(c); strings.Count(got, "cannot be read") != 2 || strings.Count(got, "within a record") != 1 {
		t.Errorf("missing: %s", got)
	}
	write(t, r, numbered(100, 2000, 100)...)
	for _, name := range []string{"00005_20261121130500", "00006_20261121130500", "00006_20261121130501"} {
		if _, err := os.Lstat(filepath.Join(folder, "ring_"+name+".pcapng")); err == nil {
			t.Errorf("the oldest file %s is there still", name)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "precious" {
		t.Error("the ring followed a link")
	}
	if entries, _ := os.ReadDir(folder); len(entries) < 6 {
		t.Error("foreign files were removed")
	}
}

// TestReplacedFile: where another file took the name of one of the ring's, the ring does not remove
// it, and a cut does not fail. The same holds for a file that is gone.
func TestReplacedFile(t *testing.T) {
	folder, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	r := open(t, folder, small())
	write(t, r, numbered(0, 200, 100)...)
	path, gone := r.files[0].path, r.files[1].path
	if err := os.WriteFile(other, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	c, _, in := cut(t, r, Span{From: start, To: at(199 * time.Millisecond)})
	if got := reasons(c); got != "a file cannot be read; files are gone" {
		t.Errorf("missing: %s", got)
	}
	if s := in.Sections(0); len(s) != 2 || len(s[1].Comments) != 2 {
		t.Errorf("the sections say %v", s)
	}
	write(t, r, numbered(200, 3000, 100)...)
	if _, err := os.Lstat(path); err != nil {
		t.Error("the ring removed a file that is not its own")
	}
}

// FuzzAdopted reads any bytes as a file of an earlier run.
func FuzzAdopted(f *testing.F) {
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, capture.WriterOptions{Comments: []string{runWords + "x, file 1"}})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := w.AddInterface(describe(0, 0)); err != nil {
		f.Fatal(err)
	}
	for _, x := range numbered(0, 3, 40) {
		if err := w.WriteFrame(x); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "ring_00001_20261121130500.pcapng"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		r := open(t, folder, small())
		cut(t, r, Span{From: -1 << 62, To: 1 << 62})
		cut(t, r, Span{From: start, To: at(time.Hour), Pair: Pair{A: addr(1), B: addr(0)}})
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

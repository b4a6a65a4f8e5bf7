//go:build unix

package outfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// put writes a file for a test and returns its path.
func put(t *testing.T, path, text string, mode fs.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// holds checks that a file has this text and these permissions; 0 means any.
func holds(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != text {
		t.Errorf("%s holds %q, expected %q", path, b, text)
	}
	if info, err := os.Lstat(path); err != nil || mode != 0 && info.Mode() != mode {
		t.Errorf("%s has mode %v, expected %v (%v)", path, info.Mode(), mode, err)
	}
}

// alone checks that a folder has these files and no others.
func alone(t *testing.T, folder string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	if strings.Join(found, " ") != strings.Join(names, " ") {
		t.Errorf("the folder has %v, expected %v", found, names)
	}
}

// kinds are the two ways to open an output.
func kinds(o *Outputs) map[string]func(string, Content) (*File, error) {
	return map[string]func(string, Content) (*File, error){"whole": o.Whole, "stream": o.Stream}
}

// umask sets the umask for a test.
func umask(t *testing.T, mask int) {
	old := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(old) })
}

func itoa(f *os.File) string { return strconv.Itoa(int(f.Fd())) }

func write(t *testing.T, f *File, text string) {
	t.Helper()
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestModes(t *testing.T) {
	open := fs.FileMode(0o640)
	for _, c := range []struct {
		name    string
		umask   int
		content Content
		mode    *fs.FileMode
		want    fs.FileMode
	}{
		{"text", 0o022, Text, nil, 0o644},
		{"text of a careful user", 0o077, Text, nil, 0o600},
		{"payload", 0, Payload, nil, 0o600},
		{"payload that a group may read", 0o077, Payload, &open, 0o640},
		{"text with --mode", 0, Text, &open, 0o640},
	} {
		umask(t, c.umask)
		for kind := range kinds(nil) {
			for _, was := range []string{"none", "0644", "0444 0600"} {
				if strings.HasPrefix(was, "0444") && os.Geteuid() != 0 {
					continue // a file that its owner may not write is refused
				}
				path := filepath.Join(t.TempDir(), "x")
				switch was {
				case "0644":
					put(t, path, "old", 0o644)
				case "0444 0600":
					put(t, path, "old", 0o444)
				}
				o := &Outputs{Mode: c.mode}
				f, err := kinds(o)[kind](path, c.content)
				if err != nil {
					t.Fatalf("%s, %s, %s: %v", c.name, kind, was, err)
				}
				write(t, f, "new")
				if err := f.Commit(); err != nil {
					t.Fatal(err)
				}
				holds(t, path, "new", c.want)
				alone(t, filepath.Dir(path), "x")
			}
		}
	}
}

// TestOldReadersReadNothingNew: a file that was opened while everybody could
// read it is not written to. A process that has it open reads the old contents.
func TestOldReadersReadNothingNew(t *testing.T) {
	for kind := range kinds(nil) {
		path := put(t, filepath.Join(t.TempDir(), "x"), "old", 0o644)
		reader, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		f, err := kinds(&Outputs{})[kind](path, Payload)
		if err != nil {
			t.Fatal(err)
		}
		write(t, f, "secret")
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 10)
		if n, _ := reader.Read(b); string(b[:n]) != "old" {
			t.Errorf("%s: an old reader reads %q", kind, b[:n])
		}
	}
}

func TestAbortLeavesTheOldFile(t *testing.T) {
	for _, end := range []string{"abort", "abandon", "signal"} {
		path := put(t, filepath.Join(t.TempDir(), "x"), "old", 0o644)
		o := &Outputs{}
		f, err := o.Whole(path, Text)
		if err != nil {
			t.Fatal(err)
		}
		write(t, f, "half")
		holds(t, path, "old", 0o644)
		switch end {
		case "abort":
			err = f.Abort()
		case "abandon":
			o.Abandon()
		case "signal":
			o.RemoveUnfinished()
		}
		if err != nil {
			t.Fatal(err)
		}
		holds(t, path, "old", 0o644)
		alone(t, filepath.Dir(path), "x")
	}
}

// TestCommitTogether: all of several files are complete before the first
// replaces its target.
func TestCommitTogether(t *testing.T) {
	folder := t.TempDir()
	a, b := put(t, filepath.Join(folder, "a"), "old a", 0o600), put(t, filepath.Join(folder, "b"), "old b", 0o600)
	o := &Outputs{}
	first, err := o.Whole(a, Text)
	if err != nil {
		t.Fatal(err)
	}
	second, err := o.Whole(b, Text)
	if err != nil {
		t.Fatal(err)
	}
	write(t, first, "new a")
	if err := second.file.Close(); err != nil { // like a disk that fails at the end
		t.Fatal(err)
	}
	if err := Commit(first, second); err == nil {
		t.Error("expected the second file's error")
	}
	holds(t, a, "old a", 0)
	holds(t, b, "old b", 0)
	alone(t, folder, "a", "b")
}

// TestUnplaced: a file whose path is decided late appears there whole, or not at all.
func TestUnplaced(t *testing.T) {
	work, folder := t.TempDir(), t.TempDir()
	o := &Outputs{}
	for _, text := range []string{"first", "second"} {
		f, err := o.Unplaced(work, Text)
		if err != nil {
			t.Fatal(err)
		}
		f.Durable()
		write(t, f, text)
		alone(t, folder, map[string][]string{"first": nil, "second": {"x"}}[text]...)
		if err := f.CommitAs(filepath.Join(folder, "x")); err != nil {
			t.Fatal(err)
		}
		holds(t, filepath.Join(folder, "x"), text, 0)
	}
	alone(t, work)
	link := filepath.Join(folder, "y")
	if err := os.Symlink("x", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, folder, os.DevNull, filepath.Join(folder, "none", "x")} {
		f, err := o.Unplaced(work, Text)
		if err != nil {
			t.Fatal(err)
		}
		write(t, f, "third")
		if err := f.CommitAs(path); err == nil {
			t.Errorf("%s: was written", path)
		}
		alone(t, work)
	}
	holds(t, filepath.Join(folder, "x"), "second", 0)
}

func TestLinksAreNotFollowed(t *testing.T) {
	for kind := range kinds(nil) {
		folder := t.TempDir()
		victim := put(t, filepath.Join(folder, "victim"), "old", 0o644)
		link, hanging, hard := filepath.Join(folder, "link"), filepath.Join(folder, "hanging"), filepath.Join(folder, "hard")
		for _, err := range []error{
			os.Symlink(victim, link), os.Symlink(filepath.Join(folder, "none"), hanging),
			os.Link(victim, hard),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		o := &Outputs{}
		for _, path := range []string{link, hanging} {
			if _, err := kinds(o)[kind](path, Payload); err == nil || !strings.Contains(err.Error(), "symbolic link") {
				t.Errorf("%s, %s: %v, expected a refusal", kind, filepath.Base(path), err)
			}
		}
		// The second name of a file becomes a file of its own.
		f, err := kinds(o)[kind](hard, Payload)
		if err != nil {
			t.Fatal(err)
		}
		write(t, f, "new")
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
		holds(t, hard, "new", 0o600)
		holds(t, victim, "old", 0o644)
		alone(t, folder, "hanging", "hard", "link", "victim")
	}
}

// TestLinkPlantedLater: a link that another process creates between the check
// and the opening changes nothing elsewhere.
func TestLinkPlantedLater(t *testing.T) {
	folder := t.TempDir()
	victim, path := put(t, filepath.Join(folder, "victim"), "old", 0o644), filepath.Join(folder, "x")
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	if _, err := claim(path, payloadMode, true, false); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a stream: %v, expected a refusal", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f, err := (&Outputs{}).Whole(path, Payload)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f, "new")
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil {
		t.Error("a whole file: expected a refusal")
	}
	holds(t, victim, "old", 0o644)
	alone(t, folder, "victim", "x")
}

func TestNoInputIsWritten(t *testing.T) {
	for kind := range kinds(nil) {
		folder := t.TempDir()
		in := put(t, filepath.Join(folder, "in"), "capture", 0o644)
		if err := os.Link(in, filepath.Join(folder, "hard")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(in, filepath.Join(folder, "link")); err != nil {
			t.Fatal(err)
		}
		o := &Outputs{}
		o.Reads("the capture to be read", filepath.Join(folder, "link"))
		for _, name := range []string{"in", "hard", "link", "../" + filepath.Base(folder) + "/in"} {
			if _, err := kinds(o)[kind](folder+"/"+name, Text); err == nil {
				t.Errorf("%s: %s was opened", kind, name)
			}
		}
		holds(t, in, "capture", 0o644)
	}
}

func TestOutputsAreApart(t *testing.T) {
	for kind := range kinds(nil) {
		folder := t.TempDir()
		if err := os.Symlink(folder, filepath.Join(folder, "here")); err != nil {
			t.Fatal(err)
		}
		o := &Outputs{}
		for _, name := range []string{"new", "old"} {
			if name == "old" {
				put(t, filepath.Join(folder, name), "", 0o600)
			}
			f, err := kinds(o)[kind](filepath.Join(folder, name), Text)
			if err != nil {
				t.Fatal(err)
			}
			for _, again := range []string{name, "here/" + name} {
				for other := range kinds(nil) {
					if _, err := kinds(o)[other](filepath.Join(folder, again), Text); err == nil ||
						!strings.Contains(err.Error(), "this run writes") {
						t.Errorf("%s, then %s of %s: %v, expected a refusal", kind, other, again, err)
					}
				}
			}
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
			if f, err = kinds(o)[kind](filepath.Join(folder, name), Text); err != nil {
				t.Errorf("after the end: %v", err)
			} else if err := f.Abort(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestNoClobber(t *testing.T) {
	for kind := range kinds(nil) {
		folder := t.TempDir()
		path := put(t, filepath.Join(folder, "old"), "old", 0o644)
		o := &Outputs{NoClobber: true}
		if _, err := kinds(o)[kind](path, Text); err == nil || !strings.Contains(err.Error(), "--no-clobber") {
			t.Errorf("%s: %v, expected a refusal", kind, err)
		}
		f, err := kinds(o)[kind](filepath.Join(folder, "new"), Text)
		if err != nil {
			t.Fatal(err)
		}
		write(t, f, "new")
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
		holds(t, filepath.Join(folder, "new"), "new", 0)
		holds(t, path, "old", 0o644)
		if kind == "whole" { // the name is taken while the file is being written
			late := filepath.Join(folder, "late")
			if f, err = o.Whole(late, Text); err != nil {
				t.Fatal(err)
			}
			put(t, late, "theirs", 0o644)
			if err := f.Commit(); err == nil || !strings.Contains(err.Error(), "--no-clobber") {
				t.Errorf("%v, expected a refusal", err)
			}
			holds(t, late, "theirs", 0o644)
			alone(t, folder, "late", "new", "old")
		}
	}
}

// TestLongName: a name of the greatest length leaves no room for a longer
// temporary name.
func TestLongName(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("é", 127))
	f, err := (&Outputs{}).Whole(path, Text)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "", 0)
}

func TestRefusals(t *testing.T) {
	folder := t.TempDir()
	for kind := range kinds(nil) {
		for path, want := range map[string]string{
			folder:                           "found a directory",
			filepath.Join(folder, "no", "x"): "expected a folder that exists",
			"/dev/fd/999":                    "expected an open descriptor",
		} {
			if _, err := kinds(&Outputs{})[kind](path, Text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: %v, expected %q", kind, path, err, want)
			}
		}
	}
	alone(t, folder)
}

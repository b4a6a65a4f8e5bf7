// Package folders writes and compares folders for tests of runs over many captures. For example, the
// tables of `ackscope batch` and those of another engine are the same, byte for byte.
package folders

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// work are the folders in which runs keep what is no table.
var work = []string{".batch", ".beam"}

// Digests returns the hash of each file below a folder, by its path with slashes. It leaves out what
// runs keep for themselves.
func Digests(t testing.TB, folder string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && slices.Contains(work, d.Name()) {
				return filepath.SkipDir
			}
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		name, err := filepath.Rel(folder, path)
		sums[filepath.ToSlash(name)] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// Same checks that two folders of tables have the same files. It returns how many.
func Same(t testing.TB, what, got, want string) int {
	t.Helper()
	const least = 3 // summary.json, captures.parquet and a table
	g, w := Digests(t, got), Digests(t, want)
	if len(w) < least {
		t.Fatalf("%s: only %d files to compare with", what, len(w))
	}
	for name, sum := range w {
		if g[name] != sum {
			t.Errorf("%s: %s differs", what, name)
		}
	}
	for name := range g {
		if w[name] == "" {
			t.Errorf("%s: %s is too many", what, name)
		}
	}
	return len(w)
}

// Put writes a file and the folders above it.
func Put(t testing.TB, path string, b []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Break writes captures that are broken in several ways beside a capture.
func Break(t testing.TB, capture string) {
	t.Helper()
	b, err := os.ReadFile(capture)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(capture)
	Put(t, filepath.Join(folder, "cut.pcapng"), b[:len(b)*2/3])
	Put(t, filepath.Join(folder, "head.pcapng"), b[:20])
	Put(t, filepath.Join(folder, "empty.pcap"), nil)
	Put(t, filepath.Join(folder, "words.pcap"), []byte("no capture at all"))
	damaged := slices.Clone(b)
	for i := range 64 {
		damaged[len(damaged)/2+i] ^= 0xff
	}
	Put(t, filepath.Join(folder, "damaged.pcapng"), damaged)
}

package cli

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/files"
	"github.com/ackscope/ackscope/internal/leaks"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/rewrite/anonymise"
)

// anonymised returns the bytes of a capture anonymised under a key.
func anonymised(t *testing.T, from, to string, o anonymise.Options) []byte {
	t.Helper()
	a := &app.App{Streams: app.Streams{In: os.Stdin, Out: io.Discard, Err: io.Discard}, Registry: protocols()}
	a.Flags.Quiet = true
	if err := files.Anonymise(a, from, to, o); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// leakRuns returns the number of captures for TestNoLeaks; `make leaks` sets
// 2,000.
func leakRuns(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ACKSCOPE_LEAKS")
	switch {
	case text == "" && testing.Short():
		return 20
	case text == "":
		return 100
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("ACKSCOPE_LEAKS: %v", err)
	}
	return n
}

// TestNoLeaks: an anonymised capture contains no marked byte of the original.
func TestNoLeaks(t *testing.T) {
	runs, marks, written, leaking := leakRuns(t), 0, 0, 0
	dir := t.TempDir()
	planted := map[string]int{}
	for seed := range runs {
		capture, m := leaks.Make(uint64(seed))
		for place, n := range m.Planted(capture) {
			planted[place] += n
			marks += n
		}
		path := filepath.Join(dir, "marked.cap")
		if err := os.WriteFile(path, capture, 0o600); err != nil {
			t.Fatal(err)
		}
		ports := seed%2 == 1
		x := anonymised(t, path, filepath.Join(dir, "x.pcapng"), anonymise.Options{Key: [32]byte{1}, Ports: ports})
		y := anonymised(t, path, filepath.Join(dir, "y.pcapng"), anonymise.Options{Key: [32]byte{2}, Ports: ports})
		written += len(x)
		if found := m.Find(x, y); len(found) > 0 {
			leaking++
			t.Errorf("seed %d: %d marks left, the first of: %s", seed, len(found), found[0])
		}
	}
	for place, n := range planted {
		if runs >= 100 && n == 0 && !strings.HasSuffix(place, "as text") {
			t.Errorf("no capture has a mark of this place: %s", place)
		}
	}
	t.Logf("%d captures, %d marks at %d places, %d bytes written; %d captures with marks left", runs, marks,
		len(planted), written, leaking)
}

// TestAnonymiseHostile: an anonymised capture contains nothing of the original
// that testdata/hostile/README.md names.
func TestAnonymiseHostile(t *testing.T) {
	from := filepath.Join(testenv.Module(t), "testdata", "hostile", "anonymise-secrets.pcapng")
	original, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	share := anonymised(t, from, filepath.Join(t.TempDir(), "share.pcapng"), anonymise.Options{Key: [32]byte{1}})
	// Parts of the words are enough: a header of 8 bytes cannot contain a whole
	// word.
	for _, secret := range []string{
		"SECRET", "SECR", "CRET", "198.51.100.", "203.0.113.", "2001:db8:dead", "\xc6\x33\x64\x07",
		"\xcb\x00\x71\x09",
		"\x20\x01\x0d\xb8", "\xaa\xbb\xcc\xdd\xee",
	} {
		if strings.Contains(string(share), secret) {
			t.Errorf("%q is left", secret)
		}
	}
	if n := strings.Count(string(original), "SECRET"); n < 1000 {
		t.Errorf("the original says SECRET %d times, expected at least 1000", n)
	}
}

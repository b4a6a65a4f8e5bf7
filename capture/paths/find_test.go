package paths

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A directory stands for the captures below it, and a pattern for what it
// matches. Captures are known by name, or by their first bytes.
func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	pcap := "\xd4\xc3\xb2\xa1 and so on"
	for name, text := range map[string]string{
		"a/one.pcap": pcap, "a/two.pcapng.gz": "?", "a/one.pcap.replay": "{}", "a/row.pcap12": pcap,
		"a/deep/er/three.cap.zst": "?", "a/deep/unnamed": pcap, "a/deep/section": "\x0a\x0d\x0d\x0a", "a/notes.txt": "no",
		"a/.hidden/four.pcap": pcap, "a/short": "ab", "b/notes.txt": "no", "odd[1].pcap": pcap,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..", "a/deep/up"); err != nil { // a circle
		t.Fatal(err)
	}
	below := "a/.hidden/four.pcap a/deep/er/three.cap.zst a/deep/section a/deep/unnamed a/one.pcap a/row.pcap12 " +
		"a/two.pcapng.gz"
	for _, c := range []struct{ arguments, found, failed string }{
		{"a", below, ""},
		{"a a/one.pcap", below + " a/one.pcap", ""}, // an argument is read as often as it is given
		{"a/one.pcap a", "a/one.pcap " + strings.ReplaceAll(below, "a/one.pcap ", ""), ""},
		{"a a", below, ""},
		{"a/*.pcap*", "a/one.pcap a/row.pcap12 a/two.pcapng.gz", ""},
		{"./a/on?.pcap", "./a/one.pcap", ""},
		{"a/**/*.cap.zst", "a/deep/er/three.cap.zst", ""},
		{"**/*.pcap", "a/one.pcap odd[1].pcap", ""},
		{"a/**/.hidden/*", "a/.hidden/four.pcap", ""},
		{"a/**", "a/deep/er/three.cap.zst a/deep/section a/deep/unnamed a/one.pcap a/row.pcap12 a/two.pcapng.gz", ""},
		{"a/d*", "a/deep/er/three.cap.zst a/deep/section a/deep/unnamed", ""},
		{"a/d*/unnamed", "a/deep/unnamed", ""},
		{"odd[1].pcap", "odd[1].pcap", ""}, // a file comes before a pattern
		{"odd[[]1].pcap", "odd[1].pcap", ""},
		{"odd[0-9.pcap", "", "expected a ]"},
		{"missing.pcap -", "missing.pcap -", ""},
		{"b", "", "b: no capture below it"},
		{"a/*.txt a/one.pcap", "a/one.pcap", "no capture matches the pattern"},
		{"a/*.zip", "", "no file matches the pattern"},
		{"none/*/x", "", "no file matches the pattern"},
	} {
		got := Find(strings.Fields(c.arguments), nil)
		for i := range got.Paths {
			got.Paths[i] = filepath.ToSlash(got.Paths[i])
		}
		if !slices.Equal(got.Paths, strings.Fields(c.found)) {
			t.Errorf("%s: found %q, expected %q", c.arguments, got.Paths, c.found)
		}
		if len(got.Failed) > 1 || (len(got.Failed) == 1) != (c.failed != "") ||
			len(got.Failed) == 1 && !strings.Contains(got.Failed[0].Error(), c.failed) {
			t.Errorf("%s: failed %v, expected %q", c.arguments, got.Failed, c.failed)
		}
	}
	var others []string
	Find([]string{"a"}, func(path string) { others = append(others, filepath.Base(path)) })
	if !slices.Contains(others, "one.pcap.replay") || slices.Contains(others, "one.pcap") {
		t.Errorf("the other files: %q", others)
	}
}

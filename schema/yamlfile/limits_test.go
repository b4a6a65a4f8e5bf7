package yamlfile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/dissect"
)

// mostAllocated is what reading may allocate for each byte of a file, including
// freed memory. The library alone takes 500 for a list of numbers, the worst
// legitimate file. A mapping of 1,000 settings takes 900.
const mostAllocated = 1500

// allocatedFree is what any file may take.
const allocatedFree = 1 << 20

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// shapes are files of about n bytes that repeat one pattern. Each pattern
// nests, or makes the library examine what came before.
var shapes = map[string]func(n int) string{
	"brackets":           func(n int) string { return strings.Repeat("[", n) },
	"closed brackets":    func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
	"braces":             func(n int) string { return strings.Repeat("{a: ", n/4) },
	"brackets in a line": func(n int) string { return strings.Repeat("[\n", n/2) },
	"pairs in brackets":  func(n int) string { return strings.Repeat("[a: ", n/4) },
	"both":               func(n int) string { return strings.Repeat("[{a: ", n/5) },
	"dashes":             func(n int) string { return strings.Repeat("- ", n/2) + "x" },
	"dashes in brackets": func(n int) string { return "[" + strings.Repeat("- ", n/2) + "x" },
	"questions":          func(n int) string { return strings.Repeat("? ", n/2) + "x" },
	"colons":             func(n int) string { return strings.Repeat(": ", n/2) },
	"names in a line":    func(n int) string { return strings.Repeat("a: ", n/3) },
	"indented names":     func(n int) string { return indented(n, "a:\n") },
	"indented dashes":    func(n int) string { return indented(n, "-\n") },
	"indented questions": func(n int) string { return indented(n, "?\n") },
	"braces and lines":   func(n int) string { return "{" + indented(n, "a:\n") },
	"dash and name":      func(n int) string { return strings.Repeat("- a:\n", 1) + strings.Repeat("  - a:\n", n/8) },
	"tags":               func(n int) string { return strings.Repeat("!a ", n/3) + "x" },
	"anchors":            func(n int) string { return strings.Repeat("&a ", n/3) + "x" },
	"aliases":            func(n int) string { return "a: &a [1]\nb: [" + strings.Repeat("*a, ", n/4) + "]" },
	"merges":             func(n int) string { return "a: &a {b: 1}\n" + strings.Repeat("- {<<: *a}\n", n/11) },
	"laughs":             func(int) string { return nestedAliases(30) },
	"settings":           func(n int) string { return numbered(n, "a%d: 1\n") },
	"settings in braces": func(n int) string { return "{" + numbered(n, "a%d: 1, ") + "}" },
	"documents":          func(n int) string { return strings.Repeat("---\na: 1\n", n/9) },
	"ends":               func(n int) string { return strings.Repeat("...\n", n/4) },
	"one long name":      func(n int) string { return strings.Repeat("k", n/2) + ":\n" + strings.Repeat("  - 1\n", n/12) },
	"long names": func(n int) string {
		var b strings.Builder
		for i := 0; i < 60; i++ {
			b.WriteString(strings.Repeat(" ", i) + strings.Repeat("k", n/120) + ":\n")
		}
		return b.String() + strings.Repeat(strings.Repeat(" ", 60)+"- 1\n", n/130)
	},
	"numbers":  func(n int) string { return "[" + strings.Repeat("1,", n/2) + "1]" },
	"commas":   func(n int) string { return "[" + strings.Repeat(",", n) },
	"entries":  func(n int) string { return strings.Repeat("- 1\n", n/4) },
	"lines":    func(n int) string { return "a: " + strings.Repeat("bb\n  ", n/5) },
	"quoted":   func(n int) string { return "a: \"" + strings.Repeat("bb\n  ", n/5) + "\"" },
	"quotes":   func(n int) string { return strings.Repeat("'", n) },
	"literal":  func(n int) string { return "a: |\n" + strings.Repeat("  bb\n", n/5) },
	"folded":   func(n int) string { return "a: >\n" + strings.Repeat("  bb\n\n", n/6) },
	"blocks":   func(n int) string { return strings.Repeat("- |\n  b\n", n/8) },
	"comments": func(n int) string { return strings.Repeat("# c\na: b\n", n/9) },
	"blanks":   func(n int) string { return "a: b\n" + strings.Repeat("\n", n) + "c: d" },
	"tabs":     func(n int) string { return "a:" + strings.Repeat("\t", n) + "b" },
	"returns":  func(n int) string { return strings.Repeat("a: b\r\n", n/6) },
	"zeros":    func(n int) string { return strings.Repeat("\x00", n) },
	"word":     func(n int) string { return strings.Repeat("b", n) },
	"fields": func(n int) string {
		return "messages:\n  0:\n    fields:\n" + numbered(n, "      - {name: a%d, type: bool}\n")
	},
	"messages":   func(n int) string { return "messages: {" + numbered(n, "%d: {name: A}, ") + "}" },
	"no fields":  func(n int) string { return "messages:\n  0:\n    fields: [" + strings.Repeat("{}, ", n/4) + "]" },
	"deep field": func(n int) string { return "messages: {0: {fields: [" + strings.Repeat("{item: ", n/7) },
}

func indented(n int, text string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(strings.Repeat(" ", i) + text)
	}
	return b.String()
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// nestedAliases returns a schema with aliases that double their expansion the
// given number of times.
func nestedAliases(times int) string {
	var b strings.Builder
	b.WriteString("messages:\n  0:\n    fields:\n      - &a0 {name: a, type: group, fields: [{name: b, type: bool}]}\n")
	for i := range times {
		fmt.Fprintf(&b, "      - &a%d {name: a%d, type: group, fields: [*a%d, *a%d]}\n", i+1, i+1, i, i)
	}
	return b.String()
}

// readAll reads a text as each kind of file.
func readAll(src []byte) {
	_, _ = Schema(src, "x", byBits{})
	_, _ = Profiles(src, "x", &dissect.Registry{})
	var keys struct {
		Servers []struct {
			Key string `yaml:"key"`
		} `yaml:"servers"`
	}
	_ = Read(src, "x", &keys)
}

// kinds is how often readAll reads.
const kinds = 3

// TestMemory checks that the cost of every shape is proportional to its size.
// Before there were limits, 40 KB of brackets took 2.6 GB: 65,000 bytes per
// byte of the file.
func TestMemory(t *testing.T) {
	for name, shape := range shapes {
		sizes := []int{4 << 10, 24 << 10}
		if os.Getenv("ACKSCOPE_CLISOAK") != "" {
			sizes = append(sizes, 400<<10)
		}
		for _, n := range sizes {
			src := []byte(shape(n))
			src = src[:min(len(src), 2*n)]
			got := allocated(func() { readAll(src) })
			if limit := uint64(kinds * (allocatedFree + mostAllocated*len(src))); got > limit {
				t.Errorf("%s of %d bytes: reading took %d bytes, %d for each of the file's; expected at most %d", name, len(src),
					got, int(got)/len(src)/kinds, mostAllocated)
			}
		}
	}
}

// TestMemoryMixed does the same with random mixtures of several patterns.
func TestMemoryMixed(t *testing.T) {
	parts := []string{
		"[", "]", "{", "}", "a: ", "- ", "? ", "\n", "\n ", "\n  ", "\n    ", "&a ", "*a ", "<<: ", "!b ",
		", ", "\"", "'", "# c\n", "|\n", ">\n", "1", "name: x\n", "---\n", "\t", "é", "fields:\n", "messages: ",
	}
	runs := 20
	if n, err := strconv.Atoi(os.Getenv("ACKSCOPE_CLISOAK")); err == nil {
		runs = n
	}
	for seed := range runs {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		var b strings.Builder
		for b.Len() < 20<<10 {
			unit := ""
			for range 1 + rng.IntN(4) {
				unit += parts[rng.IntN(len(parts))]
			}
			b.WriteString(strings.Repeat(unit, 1+rng.IntN(3000/len(unit))))
		}
		src := []byte(b.String())
		got := allocated(func() { readAll(src) })
		if limit := uint64(kinds * (allocatedFree + mostAllocated*len(src))); got > limit {
			t.Errorf("seed %d: reading %d bytes took %d, %d each", seed, len(src), got, int(got)/len(src)/kinds)
		}
	}
}

// TestHonestFiles: files that people write are not refused for their shape.
func TestHonestFiles(t *testing.T) {
	for name, src := range map[string]string{
		"10,000 fields":       manyFields(10_000),
		"brackets in text":    "messages:\n  0:\n    doc: \"" + strings.Repeat("[ {", 500) + "\"\n    name: A\n",
		"brackets in comment": "# " + strings.Repeat("[ {", 500) + "\nmessages: {0: {name: A}}\n",
		"brackets in a block": "messages:\n  0:\n    doc: |\n" + strings.Repeat("      a range [0, 10) {\n", 200) +
			"    name: A\n",
		"brackets in words": "messages:\n  0:\n    doc: half open [0, 10) and a {\n    name: A\n",
		"anchors": "messages:\n  0: {name: A, fields: [&x {name: x, type: float}, &y {name: y, type: " +
			"float}]}\n  1: {name: B, fields: [*x, *y]}\n",
		"14 groups deep": "messages: {0: {name: A, fields: [" + strings.Repeat("{name: a, type: group, fields: [", 14) +
			"{name: b, type: bool}" + strings.Repeat("]}", 14) + "]}}",
		"list at its name": "messages:\n  0:\n    fields:\n    - name: a\n      type: bool\n    - name: b\n      " +
			"type: bool\n",
		"1,000 messages": "messages:\n" + lines(1000, "  %d: {name: A}\n"),
		"braces":         "messages: {" + strings.Repeat("\n", 3) + lines(5000, "%d: {name: A},\n") + "}",
		"windows":        "messages:\r\n  0:\r\n    name: A\r\n",
		"JSON":           `{"messages": {"0": {"name": "A", "fields": [{"name": "a", "type": "bool"}]}}}`,
	} {
		if _, err := Schema([]byte(src), "x.yaml", byBits{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func manyFields(n int) string {
	return "messages:\n  0:\n    name: A\n    fields:\n" +
		lines(n, "      - {name: a%d, type: int, min: 0, max: 7, doc: a number}\n")
}

// TestLimits: a file beyond a limit is refused with a sentence and the line.
func TestLimits(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"fields": {manyFields(10_001), "line 10005: $.messages.0.fields[10000]: expected at most 10000 fields"},
		"fields by aliases": {"messages:\n  0: {name: A, fields: &f [" + lines(100, "{name: a%d, type: bool}, ") + "]}\n" +
			lines(120, "  1%d: {name: B, fields: *f}\n"), "expected at most 10000 fields"},
		"depth": {
			strings.Repeat("[", 65) + strings.Repeat("]", 65),
			"line 1: expected values nested at most 64 deep",
		},
		"columns":         {indented(3000, "a:\n"), "line 65: expected values nested at most 64 deep"},
		"laughs":          {nestedAliases(20), "aliases that stand for at most 100000 values"},
		"itself":          {"messages: &a\n  0: *a\n", "line 2: expected the name of an anchor that stands before"},
		"deep by aliases": {deepAliases(100), "nested at most 64 deep, aliases included"},
		"settings":        {"messages:\n" + lines(1001, "  %d: {name: A}\n"), "line 1002: expected at most 1000 settings"},
		"documents":       {strings.Repeat("---\na: 1\n", 200), "expected at most 128 documents"},
		"marks":           {strings.Repeat(",", 600_000), "expected at most 500000 characters"},
		"bytes":           {strings.Repeat("a", 5<<20), "expected at most 4194304 bytes"},
	} {
		_, err := Schema([]byte(c.src), "x.yaml", byBits{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "x.yaml: ") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %.300v; expected %q", name, err, c.want)
		}
	}
}

func deepAliases(n int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [1]\n")
	for i := range n {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d]\n", i+1, i+1, i)
	}
	return b.String()
}

// TestReadFileWithoutEnd: an endless device is read up to the limit.
func TestReadFileWithoutEnd(t *testing.T) {
	var err error
	got := allocated(func() { _, err = ReadFile("/dev/zero") })
	if err == nil || !strings.Contains(err.Error(), "4 MiB") {
		t.Errorf("/dev/zero: %v", err)
	}
	if got > 8*mostBytes {
		t.Errorf("reading took %d bytes", got)
	}
}

// FuzzMemory checks the bound of TestMemory with any bytes.
func FuzzMemory(f *testing.F) {
	for _, shape := range shapes {
		f.Add([]byte(shape(600)))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got := allocated(func() { readAll(src) })
		if limit := uint64(kinds * (allocatedFree + mostAllocated*len(src))); got > limit {
			t.Errorf("reading %d bytes took %d", len(src), got)
		}
	})
}

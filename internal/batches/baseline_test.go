package batches

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/folders"
)

// builds simulates captures of two builds, and returns the manifest. The second build loses packets
// with this share.
func builds(t testing.TB, loss string, each int) string {
	t.Helper()
	folder := t.TempDir()
	manifest := "capture,build,region\n"
	for i := range 2 * each {
		build, lose := "1.4", "1%"
		if i >= each {
			build, lose = "1.5", loss
		}
		name := fmt.Sprintf("%s/%03d.pcapng", build, i)
		simulated(t, filepath.Join(folder, filepath.FromSlash(name)), "--protocol", "gaffer:reliable", "--seed",
			fmt.Sprint(i+1), "--loss", lose, "--delay", "20ms")
		manifest += fmt.Sprintf("%s,%s,%s\n", name, build, []string{"eu", "us"}[i%2])
	}
	return folders.Put(t, filepath.Join(folder, "captures.csv"), []byte(manifest))
}

// TestBaseline: two builds, of which one loses packets, differ; two equal ones do not.
func TestBaseline(t *testing.T) {
	for loss, differs := range map[string]bool{"15%": true, "1%": false} {
		manifest, folder := builds(t, loss, 16), t.TempDir()
		out, page := filepath.Join(folder, "out"), filepath.Join(folder, "page.html")
		table := filepath.Join(folder, "t.parquet")
		code := map[bool]int{true: 1, false: 0}[differs]
		said, _ := run(t, code, "batch", "--json", "-o", out, "--manifest", manifest, "--before", "build=1.4", "--after",
			"build=1.5", "--html", page, "--parquet", table, "--fail-if", "worse")
		real := map[string]string{}
		for line := range strings.Lines(said) {
			var x struct{ Kind, Figure, Rule, Verdict string }
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if x.Kind == "" && x.Verdict != "chance" {
				real[x.Figure+x.Rule] = x.Verdict
			}
		}
		if differs && (real["loss"] != "worse" || real["rtt_ms"] != "") || !differs && len(real) > 0 {
			t.Errorf("%s: the differences are %v", loss, real)
		}
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(b); strings.Contains(text, "loss is distributed otherwise") != differs ||
			!strings.Contains(text, "build=1.4") || strings.Contains(text, "<script") {
			t.Errorf("%s: the page is\n%.600s", loss, text)
		}
		if rows := tableRows(t, table); rows < 2 {
			t.Errorf("the table has %d rows", rows)
		}
		// The same comparison of two folders.
		one := filepath.Join(folder, "one")
		run(t, 0, "batch", "-q", "-o", one, filepath.Join(filepath.Dir(manifest), "1.4"))
		text, _ := run(t, code, "batch", "-o", filepath.Join(folder, "two"), filepath.Join(filepath.Dir(manifest), "1.5"),
			"--baseline", one, "--fail-if", "worse")
		if strings.Contains(text, "worse   gaffer: loss is distributed otherwise") != differs {
			t.Errorf("%s: the text is\n%s", loss, text)
		}
	}
}

func tableRows(t testing.TB, path string) (n int) {
	for _, rows := range table(t, "protocol", path) {
		n += len(rows)
	}
	return n
}

// TestHostileManifest: values of labels make harmless folders, which read back as the values.
func TestHostileManifest(t *testing.T) {
	folder := t.TempDir()
	values := []string{"../../evil", "a=b/c", "100%", "..", "", "\t\"quoted\"", "zażółć", "CON", "x\ny"}
	manifest := "build,capture\n"
	for i, v := range values {
		name := fmt.Sprintf("in/%d.pcapng", i)
		simulated(t, filepath.Join(folder, name), "--seed", fmt.Sprint(i+1), "--duration", "1s")
		manifest += fmt.Sprintf("\"%s\",%s\n", strings.ReplaceAll(v, `"`, `""`), name)
	}
	out := filepath.Join(folder, "out")
	run(t, 0, "batch", "-q", "-o", out, "--manifest", folders.Put(t, filepath.Join(folder, "m.csv"), []byte(manifest)))
	found := map[string]bool{}
	for _, path := range parts(t, out, "flows") {
		name, err := filepath.Rel(filepath.Join(out, "flows"), filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		value, err := url.PathUnescape(strings.TrimPrefix(name, "build="))
		if err != nil || strings.ContainsRune(name, filepath.Separator) {
			t.Errorf("%q: %v", name, err)
		}
		found[strings.TrimSuffix(value, "__HIVE_DEFAULT_PARTITION__")] = true
	}
	for _, v := range values {
		if !found[v] {
			t.Errorf("no folder has the value %q: %v", v, found)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 3 {
		t.Errorf("beside the output are %v, %v", entries, err)
	}
}

// TestFailOn: --fail-on looks at all findings, and captures that could not be read are graver.
func TestFailOn(t *testing.T) {
	folder := t.TempDir()
	bad := simulated(t, filepath.Join(folder, "in", "bad.pcapng"), "--protocol", "gaffer:reliable", "--loss", "5%",
		"--fault", "ack-bit-off-by-one")
	run(t, 0, "batch", "-q", "-o", filepath.Join(folder, "a"), bad)
	_, complaint := run(t, 1, "batch", "-q", "-o", filepath.Join(folder, "a"), "--fail-on", "note", bad)
	if !strings.Contains(complaint, "of severity note or above") {
		t.Errorf("it said %q", complaint)
	}
	run(t, 2, "batch", "-q", "-o", filepath.Join(folder, "a"), "--fail-on", "note", bad,
		filepath.Join(folder, "none.pcap"))
}

package batches

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/ackscope/ackscope/internal/folders"
	"github.com/ackscope/ackscope/internal/testenv"
)

// table reads tables of Parquet into a text for each row. Rows of each value of the column key are
// together, in their order.
func table(t testing.TB, key string, paths ...string) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		r := parquet.NewReader(file)
		defer r.Close()
		at := -1
		for i, f := range r.Schema().Fields() {
			if f.Name() == key {
				at = i
			}
		}
		if at < 0 {
			t.Fatalf("%s has no column %s", path, key)
		}
		leaf, _ := r.Schema().Lookup(key)
		for buf := make([]parquet.Row, 16); ; {
			n, err := r.ReadRows(buf)
			for _, row := range buf[:n] {
				of, text := "", strings.Builder{}
				for _, v := range row {
					fmt.Fprintf(&text, "%d:%d:%d:%v\n", v.Column(), v.RepetitionLevel(), v.DefinitionLevel(), v)
					if v.Column() == leaf.ColumnIndex {
						of = v.String()
					}
				}
				rows[of] = append(rows[of], text.String())
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return rows
}

// parts returns the files of a table.
func parts(t testing.TB, folder, name string) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"*.parquet", "*/*.parquet", "*/*/*.parquet"} {
		more, err := filepath.Glob(filepath.Join(folder, name, pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, more...)
	}
	return paths
}

// broken writes captures that are broken in several ways, and returns their folder.
func broken(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	folders.Break(t, simulated(t, filepath.Join(folder, "whole.pcapng"), "--loss", "5%"))
	return folder
}

// TestRows holds the tables of a run against those of `export`, which other tests hold against
// --json. The captures are the recorded ones, simulated ones of SRDP, and a broken set.
func TestRows(t *testing.T) {
	testenv.Long(t, "it analyses all captures three times")
	simulations := t.TempDir()
	for seed := range 6 {
		simulated(t, filepath.Join(simulations, fmt.Sprintf("%d.pcapng", seed)), "--protocol", "srdp", "--services", "any",
			"--clients", "3", "--loss", "5%", "--seed", fmt.Sprint(seed+1))
	}
	in := []string{filepath.Dir(testenv.Capture(t, "README.md")), simulations, broken(t)}
	out := filepath.Join(t.TempDir(), "out")
	said, _ := run(t, 2, append([]string{"batch", "-q", "-o", out}, in...)...)
	if !strings.Contains(said, "1 cut") || !strings.Contains(said, "unreadable") {
		t.Errorf("it said %q", said)
	}
	for _, name := range []string{"flows", "findings"} {
		whole := filepath.Join(t.TempDir(), name+".parquet")
		run(t, 2, append([]string{"export", "parquet", "-q", "--table", name, "-o", whole}, in...)...)
		want, got := table(t, "file", whole), table(t, "file", parts(t, out, name)...)
		if len(want) < 200 {
			t.Fatalf("%s: only %d captures have rows", name, len(want))
		}
		for file, rows := range want {
			if !slices.Equal(got[file], rows) {
				t.Errorf("%s: %s: %d rows differ from %d", name, file, len(got[file]), len(rows))
			}
		}
		for file := range got {
			if want[file] == nil {
				t.Errorf("%s: %s has rows that the command line has not", name, file)
			}
		}
	}
}

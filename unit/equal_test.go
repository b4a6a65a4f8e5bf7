package unit

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/export/parquet"
	"github.com/ackscope/ackscope/internal/testenv"
)

// captures returns all captures of testdata.
func captures(t testing.TB) (list []string) {
	t.Helper()
	for _, dir := range []string{"../testdata/pcaps", "../testdata/hostile", "../testdata/connect"} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (strings.Contains(name, ".pcap") || strings.HasSuffix(name, ".cap")) {
				list = append(list, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(list) < 100 {
		t.Fatalf("found %d captures, expected all of testdata", len(list))
	}
	return list
}

// analyzeBytes analyses bytes as one capture.
func analyzeBytes(t testing.TB, name string, data []byte, o Options) *Result {
	t.Helper()
	input := Input{Name: name, Size: int64(len(data)), Reader: bytes.NewReader(data)}
	r, err := Analyze(context.Background(), name, []Input{input}, o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// written returns rows in a format.
func written(t testing.TB, s *export.Schema, rows []Row, format string) []byte {
	t.Helper()
	var out bytes.Buffer
	var e export.Encoder
	var err error
	switch format {
	case "jsonl":
		e = export.NewLines(&out, s)
	case "csv":
		if e, err = export.NewCSV(&out, s); err != nil {
			t.Fatal(err)
		}
	default:
		e = parquet.New(&out, s)
	}
	cells := s.Cells()
	for i := range rows {
		if err := s.ReadRow(rows[i].Cells, cells); err != nil {
			t.Fatal(err)
		}
		if again := s.AppendRow(nil, cells); !bytes.Equal(again, rows[i].Cells) {
			t.Fatalf("row %d is encoded in another way once it was read", i)
		}
		if err := e.Encode(cells); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRowsAreThoseOfTheCommandLine compares the rows of all captures with those of the program, in
// every format.
func TestRowsAreThoseOfTheCommandLine(t *testing.T) {
	list, program := captures(t), testenv.Ackscope(t)
	var results []*Result
	for _, path := range list {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, analyzeBytes(t, path, data, Options{}))
	}
	for _, table := range []struct {
		schema *export.Schema
		of     func(*Result) []Row
	}{
		{&export.Flows.Schema, func(r *Result) []Row { return r.Flows }},
		{&export.Findings.Schema, func(r *Result) []Row { return r.Findings }},
	} {
		var rows []Row
		for _, r := range results {
			rows = append(rows, table.of(r)...)
		}
		if len(rows) < 200 {
			t.Fatalf("%s: %d rows", table.schema.Name, len(rows))
		}
		for _, format := range []string{"jsonl", "csv", "parquet"} {
			out := filepath.Join(t.TempDir(), "rows")
			args := append([]string{"export", format, "-q", "--join=false", "--table", table.schema.Name, "-o", out}, list...)
			said, _ := exec.Command(program, args...).CombinedOutput() // it fails if one of them cannot be read
			want, err := os.ReadFile(out)
			if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			if got := written(t, table.schema, rows, format); !bytes.Equal(got, want) {
				t.Errorf("%s as %s: %d bytes, and the program writes %d others", table.schema.Name, format, len(got), len(want))
			}
		}
	}
}

package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/internal/testenv"
)

// exported are captures of all protocols, carriers and oddities. With several
// files, the rows name theirs.
var exported = [][]string{
	{"yojimbo-packet-fragments.client.pcap.gz"},
	{"u210_loss10.client.pcapng.gz"},
	{"reliable-ipfrag.client.pcap.gz"},
	{"tpy200_clean.client.pcap.gz"},
	{"upy_three.client.pcap.gz"},
	{"u21n_kick.client.pcap.gz", "u21n_kick.server.pcapng.gz"},
}

// CSV and Parquet contain the values of --json, and JSON Lines has the same
// bytes.
func TestExportsReadBack(t *testing.T) {
	sets := exported
	if testing.Short() {
		sets = sets[:2]
	}
	rows := map[string]int{}
	for _, set := range sets {
		t.Run(set[0], func(t *testing.T) {
			var paths []string
			for _, name := range set {
				paths = append(paths, testenv.Capture(t, name))
			}
			folder := t.TempDir()
			for _, format := range []string{"jsonl", "csv", "parquet"} {
				output(t, append([]string{"export", format, "-o", folder}, paths...)...)
			}
			for _, s := range export.Tables() {
				said := output(t, append([]string{s.Name, "--json"}, paths...)...)
				if lines := read(t, filepath.Join(folder, s.Name+".jsonl")); string(lines) != said {
					t.Errorf("%s: export jsonl is not what --json prints", s.Name)
				}
				want := fromLines(t, said)
				rows[s.Name] += len(want)
				compareRows(t, s.Name+".csv", want, fromCSV(t, s, read(t, filepath.Join(folder, s.Name+".csv"))))
				compareRows(t, s.Name+".parquet", want, fromParquet(t, s, read(t, filepath.Join(folder, s.Name+".parquet"))))
			}
		})
	}
	for _, s := range export.Tables() {
		if rows[s.Name] == 0 && !testing.Short() {
			t.Errorf("%s: no row was compared", s.Name)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func compareRows(t *testing.T, name string, want, got []map[string]any) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%s: %d rows, expected %d", name, len(got), len(want))
		return
	}
	for i := range want {
		if !reflect.DeepEqual(want[i], got[i]) {
			for k := range got[i] {
				if !reflect.DeepEqual(want[i][k], got[i][k]) {
					t.Errorf("%s: row %d: %s is %v (%T), expected %v (%T)", name, i+1, k, got[i][k], got[i][k], want[i][k], want[i][k])
				}
			}
			for k := range want[i] {
				if _, ok := got[i][k]; !ok {
					t.Errorf("%s: row %d: %s is missing, expected %v", name, i+1, k, want[i][k])
				}
			}
			return
		}
	}
}

// decodeJSON decodes JSON and keeps numbers as written.
func decodeJSON(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// present omits keys without a value.
func present(row map[string]any) map[string]any {
	for k, v := range row {
		if v == nil || v == "" {
			delete(row, k)
		}
	}
	return row
}

func fromLines(t *testing.T, text string) (rows []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		rows = append(rows, present(decodeJSON(t, []byte(line)).(map[string]any)))
	}
	return rows
}

func fromCSV(t *testing.T, s *export.Schema, b []byte) (rows []map[string]any) {
	t.Helper()
	r := csv.NewReader(bytes.NewReader(b))
	heads, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows
		} else if err != nil {
			t.Fatal(err)
		}
		row := map[string]any{}
		for i, text := range record {
			switch c := &s.Columns[i]; {
			case heads[i] != c.Name:
				t.Fatalf("column %d is %q, expected %q", i+1, heads[i], c.Name)
			case text == "":
			case c.Type == export.Text || c.Type == export.Time:
				row[c.Name] = text
			default:
				row[c.Name] = decodeJSON(t, []byte(text))
			}
		}
		rows = append(rows, row)
	}
}

func fromParquet(t *testing.T, s *export.Schema, b []byte) (rows []map[string]any) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range f.Schema().Columns() {
		if path[0] != s.Columns[i].Name {
			t.Fatalf("column %d is %q, expected %q", i+1, path[0], s.Columns[i].Name)
		}
	}
	for _, group := range f.RowGroups() {
		r := group.Rows()
		buf := make([]parquet.Row, 100)
		for {
			n, err := r.ReadRows(buf)
			for _, row := range buf[:n] {
				rows = append(rows, rowOf(t, s, row))
			}
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

func rowOf(t *testing.T, s *export.Schema, values parquet.Row) map[string]any {
	row := map[string]any{}
	for _, v := range values {
		c := &s.Columns[v.Column()]
		list := c.Type == export.Uints || c.Type == export.Floats || c.Type == export.Texts
		whole := 0 // the definition level of a list that is present
		if c.Absent != export.Never {
			whole = 1
		}
		switch {
		case !list && v.IsNull(), list && v.DefinitionLevel() < whole:
		case list && v.IsNull():
			row[c.Name] = []any{}
		case list:
			so, _ := row[c.Name].([]any)
			row[c.Name] = append(so, valueOf(t, c, v))
		default:
			row[c.Name] = valueOf(t, c, v)
		}
	}
	return present(row)
}

func valueOf(t *testing.T, c *export.Column, v parquet.Value) any {
	switch c.Type {
	case export.Uint, export.Uints:
		return json.Number(strconv.FormatUint(v.Uint64(), 10))
	case export.Int:
		return json.Number(strconv.FormatInt(v.Int64(), 10))
	case export.Float, export.Floats:
		return json.Number(strconv.FormatFloat(v.Double(), 'f', -1, 64))
	case export.Bool:
		return v.Boolean()
	case export.Time:
		return time.Unix(0, v.Int64()).UTC().Format("2006-01-02T15:04:05.000000000Z")
	case export.JSON:
		return decodeJSON(t, v.ByteArray())
	default:
		return string(v.ByteArray())
	}
}

// Files are complete or absent. An existing file is kept with --no-clobber.
func TestExportLeavesNoHalfFile(t *testing.T) {
	whole := testenv.Capture(t, "reliable-loss10.client.pcap.gz")
	folder := t.TempDir()
	cut := filepath.Join(folder, "cut.pcap")
	b, err := unzipped(whole)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, b[:len(b)/2+3], 0o600); err != nil {
		t.Fatal(err)
	}
	try := func(args ...string) (int, string) {
		var out, complaint bytes.Buffer
		code := runKnown(args, app.Streams{In: strings.NewReader(""), Out: &out, Err: &complaint})
		return code, complaint.String()
	}
	names := func() (list []string) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	events := filepath.Join(folder, "events.csv")
	for _, c := range []struct {
		args []string
		code int
		says string
		left []string
	}{
		{[]string{"--strict", "-o", events, cut}, 2, "cut", []string{"cut.pcap"}},
		{[]string{"-o", filepath.Join(folder, "none", "events.csv"), whole}, 2, "no such file", []string{"cut.pcap"}},
		{[]string{"-o", events, filepath.Join(folder, "none.pcap")}, 2, "no such file", []string{"cut.pcap"}},
		{[]string{"-o", events, cut}, 0, "cut", []string{"cut.pcap", "events.csv"}},
		{[]string{"--no-clobber", "-o", events, whole}, 2, "--no-clobber keeps it", []string{"cut.pcap", "events.csv"}},
		{[]string{"-o", cut, cut}, 2, "the capture to be read", []string{"cut.pcap", "events.csv"}},
		{[]string{"-o", events, whole}, 0, "", []string{"cut.pcap", "events.csv"}},
	} {
		code, says := try(append([]string{"export", "csv", "--table", "events"}, c.args...)...)
		if code != c.code || !strings.Contains(says, c.says) {
			t.Errorf("%q: exit %d, %q; expected %d and %q", c.args, code, says, c.code, c.says)
		}
		if left := names(); fmt.Sprint(left) != fmt.Sprint(c.left) {
			t.Errorf("%q leaves %v, expected %v", c.args, left, c.left)
		}
	}
}

package cli

import (
	"bytes"
	"encoding/csv"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/export/parquet"
	"github.com/ackscope/ackscope/outfile"
)

// parquet FILE.csv FILE writes a table of CSV as one of Parquet.
func writeTable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: parquet FILE.csv FILE")
	}
	rows, err := csv.NewReader(strings.NewReader(ts.ReadFile(args[0]))).ReadAll()
	ts.Check(err)
	b, err := tableOf(rows[0], rows[1:]...)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o600))
}

// tableOf returns a table of texts in Parquet.
func tableOf(names []string, rows ...[]string) ([]byte, error) {
	schema := &export.Schema{Name: "table"}
	for _, name := range names {
		schema.Columns = append(schema.Columns, export.Column{Name: name, Type: export.Text})
	}
	var b bytes.Buffer
	e := parquet.New(&b, schema)
	for _, row := range rows {
		cells := schema.Cells()
		for i, text := range row {
			cells[i] = export.Cell{Set: true, Bytes: []byte(text)}
		}
		if err := e.Encode(cells); err != nil {
			return nil, err
		}
	}
	err := e.Close()
	return b.Bytes(), err
}

// table FILE.parquet FILE writes a table of Parquet as one of CSV.
func readTable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: table FILE.parquet FILE")
	}
	from, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer from.Close()
	info, err := from.Stat()
	ts.Check(err)
	to, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	defer to.Close()
	w := csv.NewWriter(to)
	ts.Check(parquet.ReadTexts(from, info.Size(), w.Write, func(_ int64, cells []string) error { return w.Write(cells) }))
	w.Flush()
	ts.Check(w.Error())
}

// hold FILE locks a file until the script ends, as a program that writes it does.
func holdFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hold FILE")
	}
	file, err := (&outfile.Outputs{}).Stream(ts.MkAbs(args[0]), outfile.Text)
	ts.Check(err)
	ts.Defer(func() { _ = file.Abort() })
}

package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/listing"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/internal/testenv"
)

// TestLinesAreJSON: --json prints what encoding/json makes of the cells of each row. JSON Lines write their columns
// without cells, and keep texts that many rows share.
func TestLinesAreJSON(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(testenv.Capture(t, exported[0][0])), "*.pcap*.gz"))
	if err != nil || len(paths) < len(exported) {
		t.Fatalf("%d captures, %v", len(paths), err)
	}
	if !testenv.Whole() {
		paths = nil
		for _, set := range exported {
			paths = append(paths, testenv.Capture(t, set[0]))
		}
	}
	rows := map[string]int{}
	for _, path := range paths {
		for _, s := range []*export.Schema{&export.Packets.Schema, &export.Events.Schema, &export.Messages.Schema} {
			want, got := strings.SplitAfter(fromCells(t, s, path), "\n"), strings.SplitAfter(tableLines(t, s, path), "\n")
			if len(want) != len(got) {
				t.Errorf("%s of %s: %d lines, expected %d", s.Name, path, len(got), len(want))
				continue
			}
			for i := range want {
				// Both are JSON of the same values, but encoding/json escapes no characters that mislead.
				if want[i] != got[i] &&
					!reflect.DeepEqual(decodeJSON(t, []byte(want[i])), decodeJSON(t, []byte(got[i]))) {
					t.Errorf("%s of %s: %s expected %s", s.Name, path, got[i], want[i])
					break
				}
			}
			rows[s.Name] += len(want) - 1
		}
	}
	for name, n := range rows {
		if n < 100 {
			t.Errorf("%s: %d rows", name, n)
		}
	}
}

// tableLines returns what --json prints, of packets with all that they can show.
func tableLines(t *testing.T, s *export.Schema, path string) string {
	t.Helper()
	args := []string{s.Name, "--json", "-q", path}
	if s == &export.Packets.Schema {
		args = append(args, "-V", "-x")
	}
	return output(t, args...)
}

// fromCells returns the rows of a table as encoding/json writes their cells.
func fromCells(t *testing.T, s *export.Schema, path string) string {
	t.Helper()
	var out, trouble bytes.Buffer
	streams := app.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &trouble}
	code := run(known, []string{"cells", "-q", path}, streams,
		func(a *app.App) *cobra.Command {
			return &cobra.Command{Use: "cells", RunE: func(_ *cobra.Command, args []string) error {
				to := &cellLines{columns: s.Columns, out: &out}
				switch s {
				case &export.Packets.Schema:
					l := &reader.Listing{App: a, Live: &reader.LiveFlags{}}
					var err error
					if l.Filter, err = reader.Compile(a, ""); err != nil {
						return err
					}
					listing.ExportPackets(l, to, true, true)
					return l.Run(args)
				case &export.Events.Schema:
					return listing.ExportEvents(a, &listing.EventPrinter{App: a}, "", args, to)
				default:
					return listing.ExportMessages(a, args, "", to)
				}
			}}
		})
	if code != app.ExitDone {
		t.Fatalf("cells of %s: exit %d: %s", path, code, trouble.String())
	}
	return out.String()
}

// cellLines writes cells by encoding/json.
type cellLines struct {
	columns []export.Column
	out     *bytes.Buffer
	line    []byte
}

// Encode implements export.Encoder.
func (w *cellLines) Encode(cells []export.Cell) error {
	w.line = append(w.line[:0], '{')
	for i := range cells {
		var v any // null
		if c := &cells[i]; c.Set {
			v = cellValue(c, w.columns[i].Type)
		} else if w.columns[i].Absent >= export.Omitted {
			continue
		}
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return err
		}
		if len(w.line) > 1 {
			w.line = append(w.line, ',')
		}
		w.line = append(append(append(w.line, '"'), w.columns[i].Name...), `":`...)
		w.line = append(w.line, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
	}
	_, err := w.out.Write(append(w.line, "}\n"...))
	return err
}

// Close implements export.Encoder.
func (w *cellLines) Close() error { return nil }

// cellValue returns the value of a cell for encoding/json.
func cellValue(c *export.Cell, as export.Type) any {
	switch as {
	case export.Uint:
		return c.Uint
	case export.Int:
		return c.Int
	case export.Bool:
		return c.Uint != 0
	case export.Float:
		return c.Float
	case export.Text:
		return string(c.Bytes)
	case export.Time:
		return time.Unix(0, c.Int).UTC().Format("2006-01-02T15:04:05.000000000Z07:00")
	case export.JSON:
		return json.RawMessage(c.Bytes)
	case export.Uints:
		return append([]uint64{}, c.Uints...)
	case export.Floats:
		return append([]float64{}, c.Reals...)
	default:
		list := make([]string, len(c.Ends))
		for i := range list {
			list[i] = string(c.One(i))
		}
		return list
	}
}

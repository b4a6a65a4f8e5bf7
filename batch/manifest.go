package batch

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/export/parquet"
	"github.com/ackscope/ackscope/unit"
)

// Bounds of a manifest. A million captures with paths and labels of 300 bytes are 300 MB.
// Source: bound, memory of a hostile manifest
const (
	mostManifest = 4 << 30 // bytes of the file
	mostText     = 4096    // bytes of a path or a value; PATH_MAX of Linux
	mostColumns  = 64
	mostLine     = (mostColumns + 1) * 2 * (mostText + 2) // bytes of a record of CSV, with each quote doubled
)

// captureColumn is the column of a manifest that names the captures.
const captureColumn = "capture"

// columnName matches the name of a column: a name in SQL that needs no quotes.
var columnName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
})

// manifest is the head of a manifest.
type manifest struct {
	path    string
	columns []string // other than capture, in their order
	carried []bool   // of each: it makes no partitions
	order   []int    // of each column of the file: its place in columns, or -1 for capture
	shared  map[string][]unit.Label
}

// rowFunc receives a row of a manifest: where it is ("line 7"), the capture, and its labels.
type rowFunc func(where, capture string, labels []unit.Label) error

// readManifest reads the manifest of the selection, and adds what its rows name. It returns the
// columns other than capture.
func (b *builder) readManifest() ([]string, error) {
	path := b.selection.Manifest
	file, err := b.selection.openManifest()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: expected a file of CSV or Parquet", path)
	case info.Size() > mostManifest:
		return nil, fmt.Errorf("%s: has %d bytes: expected %d at most", path, info.Size(), int64(mostManifest))
	}
	return parseManifest(file, info.Size(), path, b.selection.Partition, b.named)
}

// parseManifest reads a manifest and passes its rows. partition lists the columns that make
// partitions; nil stands for all of them. It returns the columns other than capture.
func parseManifest(file *os.File, size int64, path string, partition []string, row rowFunc) (_ []string, err error) {
	m := &manifest{path: path, shared: map[string][]unit.Label{}}
	var magic [4]byte
	if n, _ := file.ReadAt(magic[:], 0); n == 4 && string(magic[:]) == "PAR1" {
		err = parquet.ReadTexts(file, size, func(columns []string) error { return m.begin(columns, partition) },
			func(n int64, cells []string) error { return m.row(fmt.Sprintf("row %d", n), cells, row) })
	} else {
		err = m.csv(file, partition, row)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m.columns, nil
}

// csv reads a manifest of CSV.
func (m *manifest) csv(from io.Reader, partition []string, row rowFunc) error {
	r := csv.NewReader(&lineBound{from: from})
	r.ReuseRecord = true
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("is empty: expected a line with the names of columns, as %s,build,region", captureColumn)
	}
	if err != nil {
		return err
	}
	head[0] = strings.TrimPrefix(head[0], "\ufeff")
	if err := m.begin(head, partition); err != nil {
		return err
	}
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := r.FieldPos(0)
		if err := m.row(fmt.Sprintf("line %d", line), cells, row); err != nil {
			return err
		}
	}
}

// lineBound fails at a line that is longer than any that is valid.
type lineBound struct {
	from io.Reader
	line int // bytes since the last line end
}

func (l *lineBound) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			l.line += len(rest)
			break
		}
		l.line, rest = 0, rest[i+1:]
	}
	if l.line > mostLine {
		return 0, fmt.Errorf("a line has more than %d bytes", mostLine)
	}
	return n, err
}

// begin checks the names of the columns.
func (m *manifest) begin(names, partition []string) error {
	if len(names) > mostColumns {
		return fmt.Errorf("has %d columns: expected %d at most", len(names), mostColumns)
	}
	seen := map[string]bool{}
	for _, name := range names {
		folded := strings.ToLower(name) // databases read names of columns in either case
		switch {
		case !columnName().MatchString(name):
			return fmt.Errorf("column %q: expected a name of letters, digits and _", name)
		case seen[folded]:
			return fmt.Errorf("column %q is there twice", name)
		case name == captureColumn:
			m.order = append(m.order, -1)
		case reserved()[folded]:
			return fmt.Errorf("column %q: the tables have a column of this name: expected another one", name)
		default:
			m.order = append(m.order, len(m.columns))
			m.columns = append(m.columns, name)
			m.carried = append(m.carried, partition != nil && !slices.Contains(partition, name))
		}
		seen[folded] = true
	}
	if !slices.Contains(m.order, -1) {
		return fmt.Errorf("has no column %q: expected one that names the captures", captureColumn)
	}
	for _, name := range partition {
		if !slices.Contains(m.columns, name) {
			return fmt.Errorf("has no column %q, by which the tables are to be divided: it has %s", name,
				strings.Join(m.columns, ", "))
		}
	}
	return nil
}

// reserved are the names of columns of the tables that are written, in lower case. A folder's label
// of the same name would hide them.
var reserved = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{captureColumn: true}
	for _, s := range []*export.Schema{&export.Flows.Schema, &export.Findings.Schema, capturesSchema(nil)} {
		for i := range s.Columns {
			names[strings.ToLower(s.Columns[i].Name)] = true
		}
	}
	return names
})

// row checks and passes a row.
func (m *manifest) row(where string, cells []string, pass rowFunc) error {
	capture, labels := "", make([]unit.Label, len(m.columns))
	for i, cell := range cells {
		at := m.order[i]
		if at < 0 {
			if capture = cell; capture == "" || len(capture) > mostText || strings.ContainsRune(capture, 0) {
				return fmt.Errorf("%s: %q: expected the path of a capture", where, capture[:min(len(capture), 80)])
			}
			continue
		}
		if why := checkValue(m.columns[at], cell, m.carried[at]); why != "" {
			return fmt.Errorf("%s: %s: the value %q %s", where, m.columns[at], cell[:min(len(cell), 80)], why)
		}
		labels[at] = unit.Label{Name: m.columns[at], Value: cell, Carried: m.carried[at]}
	}
	if len(m.columns) == 0 {
		labels = nil
	}
	return pass(where, capture, m.share(labels))
}

// mostShared bounds how many sets of labels are kept to be shared by captures.
const mostShared = 1 << 12

// share returns labels that are equal, in memory that captures share.
func (m *manifest) share(labels []unit.Label) []unit.Label {
	var key strings.Builder
	for i := range labels {
		labels[i].Value = strings.Clone(labels[i].Value) // of one row's memory
		fmt.Fprintf(&key, "%q", labels[i].Value)
	}
	if known, ok := m.shared[key.String()]; ok {
		return known
	}
	if len(m.shared) < mostShared {
		m.shared[key.String()] = labels
	}
	return labels
}

// beside returns the path of a capture that a manifest names.
func beside(manifest, capture string) string {
	path := filepath.FromSlash(capture)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(manifest), path)
}

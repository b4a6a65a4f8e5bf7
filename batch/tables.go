package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/export/parquet"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/unit"
)

// Tables are the tables that are partitioned, by the names of their folders.
func Tables() []*export.Schema {
	return []*export.Schema{&export.Flows.Schema, &export.Findings.Schema}
}

// mostPartitions bounds the folders of a table.
// Source: definition, a folder for each value of a column of identities is a mistake
const mostPartitions = 10_000

// partitions counts folders of a table.
type partitions map[string]bool

// add counts a folder. It fails beyond the bound.
func (p partitions) add(folder string) error {
	if p[folder] = true; len(p) > mostPartitions {
		return fmt.Errorf("the manifest's columns make more than %d partitions: expected --partition with columns that "+
			"have few values", mostPartitions)
	}
	return nil
}

// CheckPartitions fails if the labels of the captures make too many partitions.
func (p *Plan) CheckPartitions() error {
	folders := partitions{}
	for i := range p.Captures {
		if err := folders.add(Folder(p.Captures[i].Labels)); err != nil {
			return err
		}
	}
	return nil
}

// partName matches the name of a part: the first half of the SHA-256 of its bytes.
var partName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{32}\.parquet$`)
})

// IsPart reports whether a file has the name of a part.
func IsPart(name string) bool { return partName().MatchString(name) }

// PartWriter writes a part of a table. Its bytes depend on the rows alone.
type PartWriter struct {
	schema  *export.Schema
	encoder *parquet.Encoder
	buffer  *bufio.Writer
	sum     hash.Hash
	cells   []export.Cell
	rows    uint64
}

// NewPartWriter starts a part.
func NewPartWriter(w io.Writer, s *export.Schema) *PartWriter {
	p := &PartWriter{schema: s, sum: sha256.New(), cells: s.Cells()}
	p.buffer = bufio.NewWriterSize(io.MultiWriter(w, p.sum), 64<<10)
	p.encoder = parquet.New(p.buffer, s)
	return p
}

// Add adds a row as package unit encodes it. Rows come by the name of their capture, and in the
// order of the capture.
func (p *PartWriter) Add(row []byte) error {
	if err := p.schema.ReadRow(row, p.cells); err != nil {
		return err
	}
	p.rows++
	return p.encoder.Encode(p.cells)
}

// End completes the part and returns the name of its file. The name is "" for a part without rows,
// which needs no file.
func (p *PartWriter) End() (string, error) {
	if err := p.encoder.Close(); err != nil {
		return "", err
	}
	if err := p.buffer.Flush(); err != nil || p.rows == 0 {
		return "", err
	}
	return hex.EncodeToString(p.sum.Sum(nil)[:16]) + ".parquet", nil
}

// part is a file of each table to write.
type part struct {
	folder   string
	number   int
	captures []int32
}

// Write writes the tables, and returns the summary.
func (r *Run) Write(ctx context.Context) (*Summary, error) {
	if err := os.RemoveAll(r.temporary()); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.temporary(), 0o777); err != nil {
		return nil, err
	}
	parts, err := r.parts()
	if err != nil {
		return nil, err
	}
	placed, err := r.writeParts(ctx, parts)
	if err != nil {
		return nil, err
	}
	if err := Sweep(r.Folder, placed); err != nil {
		return nil, err
	}
	summary := &Summary{}
	if err := r.save("captures.parquet", func(w io.Writer) error { return r.captures(w, summary) }); err != nil {
		return nil, err
	}
	err = r.save("summary.json", summary.Write)
	return summary, errors.Join(err, os.Remove(r.temporary()))
}

// temporary is the folder of files that are not complete.
func (r *Run) temporary() string { return filepath.Join(r.Folder, workFolder, "parts") }

// parts divides the captures that have results.
func (r *Run) parts() (list []part, err error) {
	byKey := map[string]int{}
	folders := partitions{}
	for i := range r.Plan.Captures { // sorted by name, as each part is
		if r.Plan.entries[i].result.segment == 0 {
			continue
		}
		c := &r.Plan.Captures[i]
		folder, number := Folder(c.Labels), Part(c.Name, r.Parts)
		if err := folders.add(folder); err != nil {
			return nil, err
		}
		key := fmt.Sprintf("%d %s", number, folder)
		at, ok := byKey[key]
		if !ok {
			at = len(list)
			byKey[key] = at
			list = append(list, part{folder: folder, number: number})
		}
		list[at].captures = append(list[at].captures, int32(i))
	}
	slices.SortFunc(list, func(x, y part) int {
		return cmp.Or(cmp.Compare(x.folder, y.folder), cmp.Compare(x.number, y.number))
	})
	return list, nil
}

// writeParts writes all parts of all tables, and returns the paths of their files.
func (r *Run) writeParts(ctx context.Context, parts []part) (map[string]bool, error) {
	type task struct {
		table int
		part  *part
	}
	tasks := make(chan task)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	placed := map[string]bool{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range max(1, r.Threads) {
		wait.Go(func() {
			for t := range tasks {
				path, err := r.writePart(t.table, t.part)
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				placed[path] = true
				mu.Unlock()
			}
		})
	}
send:
	for table := range Tables() {
		for i := range parts {
			select {
			case tasks <- task{table, &parts[i]}:
			case <-ctx.Done():
				break send
			}
		}
	}
	close(tasks)
	wait.Wait()
	return placed, context.Cause(ctx)
}

// writePart writes a part of a table. It returns "" for a part without rows.
func (r *Run) writePart(table int, p *part) (string, error) {
	s := Tables()[table]
	file, err := r.Outputs.Unplaced(r.temporary(), outfile.Text)
	if err != nil {
		return "", err
	}
	file.Durable()
	name, err := r.fill(NewPartWriter(file, s), table, p)
	if err != nil || name == "" {
		return "", errors.Join(err, file.Abort())
	}
	folder := filepath.Join(r.Folder, s.Name, filepath.FromSlash(p.folder))
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", errors.Join(err, file.Abort())
	}
	path := filepath.Join(folder, name)
	return path, file.CommitAs(path)
}

// fill passes the rows of a part to its writer.
func (r *Run) fill(w *PartWriter, table int, p *part) (string, error) {
	var buf []byte
	for _, i := range p.captures {
		var err error
		if buf, err = r.store.read(r.Plan.entries[i].result, partFlows+table, buf); err != nil {
			return "", err
		}
		if err := rows(buf, w.Add); err != nil {
			return "", fmt.Errorf("%s: %w", r.Plan.Captures[i].Name, err)
		}
		if cap(buf) > mostKept {
			buf = nil
		}
	}
	return w.End()
}

// Sweep removes the parts of earlier runs from an output folder, and folders that are empty. placed
// are the paths of the parts that stay. Sweep leaves files with other names alone.
func Sweep(folder string, placed map[string]bool) error {
	for _, s := range Tables() {
		var folders []string
		root := filepath.Join(folder, s.Name)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir():
				folders = append(folders, path)
			case d.Type().IsRegular() && IsPart(d.Name()) && !placed[path]:
				return os.Remove(path)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, path := range slices.Backward(folders) {
			_ = os.Remove(path) // fails for a folder that is not empty
		}
	}
	return nil
}

// save writes a file of the folder whole.
func (r *Run) save(name string, fill func(io.Writer) error) error {
	file, err := r.Outputs.Unplaced(r.temporary(), outfile.Text)
	if err != nil {
		return err
	}
	file.Durable()
	to := bufio.NewWriterSize(file, 64<<10)
	if err = fill(to); err == nil {
		err = to.Flush()
	}
	if err != nil {
		return errors.Join(err, file.Abort())
	}
	return file.CommitAs(filepath.Join(r.Folder, name))
}

// captures writes the table of captures, and sums them up.
func (r *Run) captures(w io.Writer, to *Summary) error {
	table := NewCaptures(w, r.Plan.Columns)
	for i := range r.Plan.Captures {
		c, e := &r.Plan.Captures[i], &r.Plan.entries[i]
		status, sums, err := r.outcome(c, e)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if err := table.Add(c, &status); err != nil {
			return err
		}
		to.Add(c, &status, sums)
	}
	return table.Close()
}

// outcome returns what became of a capture.
func (r *Run) outcome(c *Capture, e *entry) (status unit.Status, sums *unit.Aggregates, err error) {
	sums = &unit.Aggregates{}
	if e.result.segment == 0 {
		status = unit.Status{Capture: c.Name, State: Unread, Files: len(c.Files), Bytes: e.size}
		if e.failed != nil {
			status.Error = e.failed.Error()
		} else {
			status.State, status.Bound = TimedOut, unit.BoundTime
			status.Error = fmt.Sprintf("its analysis did not end within %v", e.late)
		}
		return status, sums, nil
	}
	if status, err = r.store.status(e.result); err != nil {
		return status, nil, err
	}
	b, err := r.store.read(e.result, partAggregates, nil)
	if err == nil && len(b) > 0 {
		err = sums.UnmarshalBinary(bytes.Clone(b))
	}
	return status, sums, err
}

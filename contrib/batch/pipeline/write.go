package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/contrib/batch/apart"
)

// writeFn writes the parts of tables, and passes the names of the files.
type writeFn struct{ Job Job }

// ProcessElement is called by Beam.
func (f *writeFn) ProcessElement(
	ctx context.Context, key string, blocks func(*Block) bool, placed func(string),
) (err error) {
	k, err := parsePartKey(key)
	if err != nil {
		return err
	}
	rows, err := newSorter()
	if err != nil {
		return err
	}
	defer rows.close(&err)
	for {
		var b Block // Beam's coder may keep what the last one had
		if !blocks(&b) {
			break
		}
		if err := rows.add(string(b.Name), b.Number, b.Rows); err != nil {
			return err
		}
	}
	schema := batch.Tables()[k.table]
	name, err := f.Job.output().Write(ctx, func(w io.Writer) (string, error) {
		part := batch.NewPartWriter(w, schema)
		err := rows.each(func(name string, block []byte) error {
			if err := apart.Rows(block, part.Add); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		name, err := part.End()
		if name == "" {
			return "", err
		}
		return path.Join(schema.Name, k.folder, name), err
	})
	if err != nil {
		return err
	}
	if name != "" {
		placed(name)
	}
	return nil
}

// finishFn ends a run.
type finishFn struct{ Job Job }

// ProcessElement is called by Beam, once.
func (f *finishFn) ProcessElement(
	ctx context.Context, _ int, placed func(*string) bool, entries func(*Entry) bool, sums func(*[]byte) bool,
) error {
	names := map[string]bool{f.Job.Plan: true}
	for {
		var name string
		if !placed(&name) {
			break
		}
		names[name] = true
	}
	o := f.Job.output()
	if err := o.Sweep(ctx, names); err != nil {
		return err
	}
	if err := f.captures(ctx, entries); err != nil {
		return err
	}
	var sum []byte
	if !sums(&sum) {
		return errors.New("no sums came")
	}
	_, err := o.Write(ctx, func(w io.Writer) (string, error) {
		_, err := w.Write(sum)
		return "summary.json", err
	})
	o.Tidy()
	return err
}

// captures writes the table of captures.
func (f *finishFn) captures(ctx context.Context, entries func(*Entry) bool) (err error) {
	rows, err := newSorter()
	if err != nil {
		return err
	}
	defer rows.close(&err)
	for {
		var e Entry
		if !entries(&e) {
			break
		}
		if err := rows.add(string(e.Name), 0, e.Row); err != nil {
			return err
		}
	}
	_, err = f.Job.output().Write(ctx, func(w io.Writer) (string, error) {
		table := batch.NewCaptures(w, f.Job.Columns)
		err := rows.each(func(name string, value []byte) error {
			var row entryRow
			if err := json.Unmarshal(value, &row); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return table.Add(&row.Capture, &row.Status)
		})
		if err != nil {
			return "", err
		}
		return "captures.parquet", table.Close()
	})
	return err
}

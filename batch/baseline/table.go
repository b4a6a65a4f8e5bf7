package baseline

import (
	"io"
	"math"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/export/parquet"
)

// Rows passes a row for each rule and each figure to an encoder of export.Differences.
func (r *Result) Rows(to export.Encoder) error {
	w := &rowWriter{cells: export.Differences.Cells()}
	for _, x := range r.Rules {
		w.at = 0
		w.texts(x.Protocol, x.Rule, x.Severity, "", x.Kind())
		w.counts(true, x.Before.Flows, x.Before.Of, x.After.Flows, x.After.Of)
		w.floats(x.Before.Rate, x.After.Rate, x.Change, x.Least, x.Most)
		w.floats(math.NaN(), math.NaN(), math.NaN(), x.Effect, x.Chance)
		w.texts(x.Verdict(), x.Example.Capture)
		w.counts(x.Example.Capture != "", x.Example.Frame)
		if err := to.Encode(w.cells); err != nil {
			return err
		}
	}
	for _, x := range r.Figures {
		w.at = 0
		w.texts(x.Protocol, "", "", x.Name, "")
		w.counts(false, 0, 0, 0, 0)
		w.floats(x.Before.Median, x.After.Median, math.NaN(), math.NaN(), math.NaN(), x.Before.P95, x.After.P95, x.Distance,
			math.NaN(), x.Chance)
		w.texts(x.Verdict(), "")
		w.counts(false, 0)
		if err := to.Encode(w.cells); err != nil {
			return err
		}
	}
	return nil
}

// Parquet writes the table.
func (r *Result) Parquet(w io.Writer) error {
	e := parquet.New(w, export.Differences)
	if err := r.Rows(e); err != nil {
		return err
	}
	return e.Close()
}

// rowWriter fills the cells of a row from left to right.
type rowWriter struct {
	cells []export.Cell
	at    int
}

func (w *rowWriter) next(set bool) *export.Cell {
	c := &w.cells[w.at]
	w.at++
	*c = export.Cell{Set: set}
	return c
}

func (w *rowWriter) texts(list ...string) {
	for _, s := range list {
		w.next(s != "").Bytes = []byte(s)
	}
}

func (w *rowWriter) counts(set bool, list ...uint64) {
	for _, n := range list {
		w.next(set).Uint = n
	}
}

func (w *rowWriter) floats(list ...float64) {
	for _, v := range list {
		w.next(!math.IsNaN(v) && !math.IsInf(v, 0)).Float = v
	}
}

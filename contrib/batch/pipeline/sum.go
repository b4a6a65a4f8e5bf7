package pipeline

import (
	"bytes"
	"encoding/json"

	"github.com/ackscope/ackscope/batch"
)

// tally is a sum of captures that grows. It stays in memory until it leaves the worker.
type tally struct{ sum *batch.Summary }

// encodeTally and decodeTally are its coder.
func encodeTally(t tally) ([]byte, error) { return json.Marshal(t.sum) }

func decodeTally(b []byte) (t tally, err error) {
	t.sum = &batch.Summary{}
	return t, json.Unmarshal(b, t.sum)
}

// sumFn sums up captures. The order is of no effect.
type sumFn struct{}

// CreateAccumulator is called by Beam.
func (*sumFn) CreateAccumulator() tally { return tally{&batch.Summary{}} }

// AddInput is called by Beam.
func (*sumFn) AddInput(t tally, b []byte) (tally, error) {
	one, err := decodeTally(b)
	if err == nil {
		t.sum.Merge(one.sum)
	}
	return t, err
}

// MergeAccumulators is called by Beam.
func (*sumFn) MergeAccumulators(t, o tally) tally {
	t.sum.Merge(o.sum)
	return t
}

// ExtractOutput is called by Beam. It returns the bytes of summary.json.
func (*sumFn) ExtractOutput(t tally) ([]byte, error) {
	var b bytes.Buffer
	err := t.sum.Write(&b)
	return b.Bytes(), err
}

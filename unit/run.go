package unit

import (
	"context"
	"errors"
)

// run is one analysis.
type run struct {
	name    string
	inputs  []Input
	options Options
}

func (r *run) analyze(ctx context.Context) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, errors.New(r.name + ": the analysis is not there yet")
}

package reader

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
)

// Open opens the files of a recording; keep says what must be readable again.
func Open(a *app.App, r *Recording, keep capture.Keep) (*capture.Input, error) {
	return capture.Open(r.Paths, capture.Options{Keep: keep, Stdin: a.In})
}

// Study runs the whole analysis twice over a recording, so that every fact has
// its final grade when the sink sees it.
func Study(a *app.App, r *Recording, sink analyze.Sink) (*analyze.Session, *capture.Input, error) {
	o, err := a.Options()
	if err != nil {
		return nil, nil, err
	}
	in, err := Open(a, r, capture.KeepPipes)
	if err != nil {
		return nil, nil, err
	}
	o.Sink = sink
	f := &Feed{Source: in, Progress: NewProgress(a, in, 2)}
	s, err := analyze.RunTwice(f, o)
	f.Progress.Done()
	return s, in, err
}

// Package pipeline analyses captures on Apache Beam. Its output is that of package batch, byte for byte:
//
//	match ─ plan ─ reshuffle ─ analyse ┬ rows ──── group by part ─ write ─┐
//	                                   ├ captures ────────────────────────┼ group ─ finish
//	                                   └ sums ──── combine ───────────────┘
//
// Workers search stores for what patterns and folders stand for ("match"), and one of them makes the
// plan of all that was found. A path means something on one machine. So where the selection has one,
// the program that submits finds the captures, and workers read its plan from a file. "analyse" has each
// capture analysed in a process of its own (package apart). "write" sorts the rows of a part and
// names the file by its bytes. "finish" removes what earlier runs left, and writes captures.parquet
// and summary.json. All files appear whole, so an engine may try each step as often as it likes.
package pipeline

import (
	"context"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

// Block is a part of a capture's rows in a table.
type Block struct {
	Name   []byte // of the capture; engines may take a string for UTF-8
	Number int    // of the block in its capture
	Rows   []byte // as apart.Rows reads them
}

// Entry is a row of the table of captures.
type Entry struct {
	Name []byte // of the capture
	Row  []byte // an entryRow in JSON
}

// Build builds the pipeline of a job.
func Build(job Job) *beam.Pipeline {
	p, s := beam.NewPipelineWithRoot()
	chunks := beam.Reshuffle(s, chunksOf(s, job))
	rows, entries, sums := beam.ParDo3(s.Scope("analyse"), &analyzeFn{Job: job}, chunks)
	write := s.Scope("write")
	placed := beam.ParDo(write, &writeFn{job}, beam.GroupByKey(write, rows))
	total := beam.Combine(s.Scope("combine"), &sumFn{}, sums)
	finish := s.Scope("finish")
	all := beam.CoGroupByKey(finish, beam.AddFixedKey(finish, placed), beam.AddFixedKey(finish, entries),
		beam.AddFixedKey(finish, total))
	beam.ParDo0(finish, &finishFn{job}, all)
	return p
}

// chunksOf returns chunks of captures: those of the plan, or of a search.
func chunksOf(s beam.Scope, job Job) beam.PCollection {
	if job.Search == nil {
		return beam.ParDo(s.Scope("read"), &readFn{job}, beam.Impulse(s))
	}
	match := s.Scope("match")
	found := beam.ParDo(match, &matchFn{}, beam.Reshuffle(match, beam.ParDo(match, &searchFn{job}, beam.Impulse(s))))
	return beam.ParDo(s.Scope("plan"), &planFn{job}, beam.GroupByKey(match, beam.AddFixedKey(match, found)))
}

// Engines find the steps by what is registered here, in each worker.
func init() {
	register.DoFn3x1[context.Context, []byte, func([]byte), error](&readFn{})
	register.DoFn3x1[context.Context, []byte, func([]byte), error](&searchFn{})
	register.DoFn3x1[context.Context, []byte, func(Match), error](&matchFn{})
	register.DoFn4x1[context.Context, int, func(*Match) bool, func([]byte), error](&planFn{})
	register.DoFn5x1[context.Context, []byte, func(string, Block), func(Entry), func([]byte), error](&analyzeFn{})
	register.DoFn4x1[context.Context, string, func(*Block) bool, func(string), error](&writeFn{})
	register.DoFn5x1[context.Context, int, func(*string) bool, func(*Entry) bool, func(*[]byte) bool, error](&finishFn{})
	register.Combiner3[tally, []byte, []byte](&sumFn{})
	register.Emitter1[[]byte]()
	register.Emitter1[string]()
	register.Emitter1[Entry]()
	register.Emitter1[Match]()
	register.Emitter2[string, Block]()
	register.Iter1[Block]()
	register.Iter1[Entry]()
	register.Iter1[Match]()
	register.Iter1[string]()
	register.Iter1[[]byte]()
	beam.RegisterCoder(reflect.TypeFor[tally](), encodeTally, decodeTally)
}

// readFn passes the chunks of the plan.
type readFn struct{ Job Job }

// ProcessElement is called by Beam.
func (f *readFn) ProcessElement(ctx context.Context, _ []byte, emit func([]byte)) error {
	return readPlan(ctx, f.Job.output(), f.Job.Plan, emit)
}

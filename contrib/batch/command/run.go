package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/contrib/batch/pipeline"
	"github.com/ackscope/ackscope/contrib/batch/place"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/unit"
)

// runFlags are the flags of `ackscope-beam run`.
type runFlags struct {
	analysis
	engine

	out       string
	manifest  string
	partition []string
	together  bool // --join
	threads   int
	parts     int
	unread    bool
	strict    bool
}

// runCommand builds `ackscope-beam run`.
func (p *program) runCommand() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run -o DIR [FILE...]",
		Short: "Analyse captures into a folder of tables",
		Long: `run analyses captures into a folder of tables, as "ackscope batch" does (docs/batch.md). A
capture, the manifest and DIR may be a path, or an address as gs://bucket/x.pcapng or
s3://bucket/x.pcapng.

Without --endpoint, Prism runs the pipeline in this process. Prism is Beam's engine for one machine.
Otherwise the engine at the endpoint runs it. A capture whose bytes do not come fails the job, so
that the engine tries again. A capture that ends its process three times is set apart.`,
		Example: `  ackscope-beam run -o tables captures/
  ackscope-beam run -o gs://bucket/tables --manifest gs://bucket/captures.csv
  ackscope-beam run --runner flink --endpoint localhost:8099 --environment EXTERNAL \
    --environment-config localhost:50000 -o /data/tables /data/captures`,
		RunE: func(c *cobra.Command, args []string) error { return p.runJob(c.Context(), f, args) },
	}
	o := c.Flags()
	o.StringVarP(&f.out, "output", "o", "", "write the tables into the folder `DIR`")
	o.StringVar(&f.manifest, "manifest", "", "read names and labels of captures from `FILE` (CSV or Parquet)")
	o.StringSliceVar(&f.partition, "partition", nil, "the manifest's `COLUMNS` that divide the tables (default: all)")
	o.BoolVar(&f.together, "join", true, "read the files of a rotated row as one capture; --join=false keeps them apart")
	o.IntVar(&f.threads, "threads", 0, "captures that a worker analyses at a time (default: as many as it has cores)")
	o.IntVar(&f.parts, "parts", 4, "files of each table and partition, at most")
	o.BoolVar(&f.unread, "unread", false, "name captures whose bytes do not come, after three tries, in place of failing")
	o.BoolVar(&f.strict, "strict", false, "exit 2 for captures that are cut short, too")
	f.analysis.register(o)
	f.engine.register(o)
	return c
}

// mostParts bounds the files of a partition, as with ackscope batch.
const mostParts = 1024

func (f *runFlags) check(args []string) error {
	switch {
	case f.out == "":
		return errors.New("expected -o with the folder to write, as in `ackscope-beam run -o tables captures/`")
	case len(args) == 0 && f.manifest == "":
		return errors.New("no capture given: expected files, directories or --manifest")
	case f.threads < 0:
		return fmt.Errorf("--threads %d: expected 1 or more", f.threads)
	case f.parts < 1 || f.parts > mostParts:
		return fmt.Errorf("--parts %d: expected 1 to %d", f.parts, mostParts)
	}
	return f.engine.check()
}

func (p *program) runJob(ctx context.Context, f *runFlags, args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	if _, err := f.options(); err != nil {
		return err // it would be the same for each capture
	}
	job, err := f.job()
	if err != nil {
		return err
	}
	selection := batch.Selection{
		Arguments: args, Manifest: f.manifest, Partition: f.partition, Apart: !f.together, Elsewhere: place.Stores{},
	}
	if job.Search, err = pipeline.NewSearch(selection); err != nil {
		return err
	}
	var found pipeline.Selected
	if job.Search == nil {
		found, err = p.planned(ctx, selection, job)
	} else {
		job.Plan, job.Columns = pipeline.NewSelectedName(), job.Search.Columns
		err = place.Output{Folder: job.Folder}.Check(ctx)
	}
	if err != nil {
		return err
	}
	if err := f.engine.execute(ctx, *job); err != nil {
		return err
	}
	if job.Search != nil {
		if found, err = job.ReadSelected(ctx); err != nil {
			return err
		}
		p.complain(found.Failed)
	}
	return p.tell(ctx, f, &found, place.Output{Folder: job.Folder})
}

// complain tells of arguments that name no capture.
func (p *program) complain(failed []string) {
	for _, text := range failed {
		p.notice("ackscope-beam: " + text)
	}
}

// planned finds the captures of a job, and writes them into its output folder.
func (p *program) planned(ctx context.Context, s batch.Selection, job *pipeline.Job) (pipeline.Selected, error) {
	var found pipeline.Selected
	plan, err := p.plan(s)
	if err != nil {
		return found, err
	}
	o := place.Output{Folder: job.Folder}
	if err := o.Check(ctx); err != nil {
		return found, err
	}
	job.Columns = plan.Columns
	job.Plan, err = pipeline.WritePlan(ctx, o, plan.Captures)
	return pipeline.NewSelected(plan), err
}

// plan finds the captures. Workers may run in other folders, so their paths are absolute.
func (p *program) plan(s batch.Selection) (*batch.Plan, error) {
	plan, err := batch.NewPlan(s)
	if err != nil {
		return nil, err
	}
	p.complain(pipeline.NewSelected(plan).Failed)
	if len(plan.Captures) == 0 {
		return nil, pipeline.ErrNone
	}
	for i := range plan.Captures {
		for j := range plan.Captures[i].Files {
			x := &plan.Captures[i].Files[j]
			if x.Path, err = anywhere(x.Path); err != nil {
				return nil, err
			}
		}
	}
	return plan, plan.CheckPartitions()
}

// job returns what the pipeline does, without its captures.
func (f *runFlags) job() (*pipeline.Job, error) {
	j := &pipeline.Job{Folder: f.out, Parts: f.parts, Threads: f.threads, Unread: f.unread}
	var err error
	if j.Folder, err = anywhere(f.out); err != nil {
		return nil, err
	}
	if j.Flags, err = f.arguments(); err != nil {
		return nil, err
	}
	j.Build, err = pipeline.Version()
	return j, err
}

// mostSummary bounds the summary that is read back.
// Source: bound, memory; that of package batch
const mostSummary = 1 << 30

// tell prints what the run did, and returns what decides the exit code.
func (p *program) tell(ctx context.Context, f *runFlags, found *pipeline.Selected, o place.Output) error {
	path := o.At("summary.json")
	b, err := place.Read(ctx, path, mostSummary)
	if err != nil {
		return err
	}
	summary, err := batch.ParseSummary(path, b)
	if err != nil {
		return err
	}
	all, parts := summary.States(), []string(nil)
	for _, s := range append(unit.States(), batch.Unread, batch.Quarantined) {
		if n := all[s]; n > 0 {
			parts = append(parts, show.Grouped(n)+" "+string(s))
		}
	}
	total := summary.Total(func(*batch.Partition) bool { return true })
	fmt.Fprintf(p.out, "%s: %s\n%s; %s, %s, %s, %s\n", printable.String(f.out), show.Plural(found.Captures, "capture"),
		strings.Join(parts, ", "), show.Plural(total.Packets, "packet"), show.Plural(total.Flows, "flow"),
		show.Plural(total.Findings, "finding"), show.Plural(len(summary.Partitions), "partition"))
	return failed(f, found, all)
}

// failed returns an error for captures that could not be read, or not to their end.
func failed(f *runFlags, found *pipeline.Selected, all map[unit.State]uint64) error {
	var list []error
	if n := len(found.Failed); n > 0 {
		list = append(list, fmt.Errorf("%s: no capture", show.Plural(n, "argument")))
	}
	count := all[unit.Unreadable] + all[unit.Panicked] + all[unit.Damaged] + all[batch.Unread] + all[batch.Quarantined]
	if f.strict {
		count += all[unit.Cut]
	}
	if count > 0 {
		list = append(list, fmt.Errorf("%d of %d captures could not be read to their end: captures.parquet names them", count,
			found.Captures))
	}
	return errors.Join(list...)
}

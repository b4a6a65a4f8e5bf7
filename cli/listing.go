package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/printable"
)

// table gives the fields that filters and columns can name.
func (a *app) table() *filter.Table {
	if a.fieldTable == nil {
		o := filter.Options{Registry: a.registry, Rules: analyze.Rules}
		for _, p := range a.registry.Protocols() {
			for i := range p.Profiles {
				o.Specs = append(o.Specs, p.Profiles[i].Fields...)
			}
		}
		a.fieldTable = filter.NewTable(o)
	}
	return a.fieldTable
}

// listing reads recordings, or an interface, packet by packet.
type listing struct {
	app    *app
	live   *liveFlags
	filter *filter.Filter
	needs  filter.Needs // of the output, beyond the filter's
	whole  bool         // show takes what a flow's end settled too, which is no packet
	// show takes a packet that passed the filter.
	show func(*filter.Record, *analyze.Record) error
	// begin is called before each recording; nil for nothing.
	begin func(*recording) error
	end   func() error // what is printed after the last packet; nil for nothing

	in      *capture.Input // nil live
	feed    *feed
	reading filter.Reading
	once    bool // files are read as -i is: in one run, printing on the way
	shown   uint64
	err     error // of show
	saved   *save // where passed packets go, rather than all
}

// filterFlag registers -Y with a completion of field names.
func (a *app) filterFlag(c *cobra.Command, text *string) {
	c.Flags().StringVarP(text, "display-filter", "Y", "", "show what matches a display `FILTER` only (see ackscope fields)")
	_ = c.RegisterFlagCompletionFunc("display-filter", a.completeFilter)
}

// compile reads -Y; its errors point at the place.
func (a *app) compile(text string) (*filter.Filter, error) {
	f, err := a.table().Compile(text)
	if err != nil {
		return nil, fmt.Errorf("-Y: %w", err)
	}
	return f, nil
}

// run reads everything. The error is a failure, or how the capture ended.
func (l *listing) run(args []string) error {
	a := l.app
	if err := l.live.check(); err != nil {
		return err
	}
	if len(l.live.devices) > 0 {
		if len(args)+len(a.flags.read) > 0 {
			return errIAndFile
		}
		return l.runLive()
	}
	list, err := a.recordings(args)
	if err != nil {
		return err
	}
	if l.live.write != "" && len(list) > 1 {
		return errApart("-w "+l.live.write, len(list))
	}
	for _, r := range list {
		if l.shown > 0 && l.shown == l.live.count {
			break
		}
		if err := l.read(r); err != nil {
			return err
		}
	}
	return l.close()
}

// read reads a recording. The error is a failure, or how the capture ended.
func (l *listing) read(from *recording) (err error) {
	a := l.app
	o, err := a.options()
	if err != nil {
		return err
	}
	keep := capture.KeepPipes
	if l.once {
		keep = capture.KeepNothing
	}
	if l.in, err = a.open(from, keep); err != nil {
		return err
	}
	defer l.in.Close()
	l.feed = &feed{source: l.in}
	if l.live.write != "" {
		if l.saved, err = a.newCopy(l.live.write, l.live.format, l.in); err != nil {
			return err
		}
	}
	if l.begin != nil {
		if err := l.begin(from); err != nil {
			return err
		}
	}
	needs := l.needs | l.filter.Needs()
	l.reading = filter.Reading{FileName: l.in.FileName, Join: needs&filter.NeedFields != 0}
	switch {
	case l.once && needs == 0:
		err = l.scan(&flushing{l.feed, a}, o.Decode)
	case l.once:
		if err = l.bound(&o); err != nil {
			return err
		}
		_, err = analyze.Run(&flushing{l.feed, a}, o)
	case needs == 0:
		err = l.scan(l.feed, o.Decode)
	default:
		l.feed.progress = a.newProgress(l.in, 2)
		o.Sink = l.take
		_, err = analyze.RunTwice(l.feed, o)
		l.feed.progress.done()
	}
	return l.finish(err, nil)
}

// close ends the listing.
func (l *listing) close() error {
	if l.end != nil {
		return l.end()
	}
	return nil
}

// scan reads without analysis: one run, no flows.
func (l *listing) scan(source capture.Source, o capture.DecodeOptions) error {
	decoder := capture.NewDecoder(o)
	var f capture.Frame
	var p capture.Packet
	r := analyze.Record{Frame: &f, Packet: &p}
	for ; ; r.N++ {
		if err := source.Next(&f); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		decoder.Decode(&f, &p)
		r.Datagram.At, r.Datagram.Ref, r.Datagram.Bytes, r.Datagram.Length = p.At, p.Ref, p.Payload, p.Length
		l.take(&r)
	}
}

func (l *listing) runLive() error {
	a := l.app
	o, err := a.options()
	if err != nil {
		return err
	}
	if l.live.write != "" && l.filter.String() != "" {
		return errors.New("-Y with -w on a live capture: expected one of them, so that no packet is lost for good (filter the file afterwards)")
	}
	s, packets, err := l.live.open(a)
	if err != nil {
		return err
	}
	l.feed = &feed{source: s.live, most: packets}
	s.notice = a.warn
	if err := l.live.saveTo(a, s, l.feed, a.warn); err != nil {
		return errors.Join(err, s.live.Close())
	}
	if l.live.write != "" {
		l.feed.most = least(packets, l.live.count)
	}
	if !a.flags.quiet {
		fmt.Fprintf(a.err, "capturing on %s\n", printable.String(l.live.device()))
	}
	needs := l.needs | l.filter.Needs()
	l.reading.Join = needs&filter.NeedFields != 0
	if needs == 0 {
		err = l.scan(&flushing{l.feed, a}, o.Decode)
	} else {
		if err = l.bound(&o); err == nil {
			_, err = analyze.Run(&flushing{l.feed, a}, o)
		}
	}
	st, closeErr := s.close(a, l.feed.frames)
	if err := l.finish(errors.Join(err, closeErr), st); err != nil {
		return err
	}
	return l.close()
}

// bound prepares the analysis of traffic that may have no end.
func (l *listing) bound(o *analyze.Options) error {
	limits, memory, err := l.app.liveLimits()
	if err != nil {
		return err
	}
	o.Sink, o.Limits = l.take, limits
	debug.SetMemoryLimit(memory)
	return nil
}

// least gives the smaller limit; 0 is none.
func least(a, b uint64) uint64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// flushing hands what was printed on before it waits for the next frame, so
// that live output is seen as it happens.
type flushing struct {
	*feed
	app *app
}

func (f *flushing) Next(fr *capture.Frame) error {
	if err := f.app.flush(); err != nil {
		return err
	}
	return f.feed.Next(fr)
}

func (l *listing) finish(err error, st []capture.Statistics) error {
	for _, s := range []*save{l.saved, l.feed.copyTo} {
		if s == nil {
			continue
		}
		before := l.err
		if before == nil {
			before = err
		}
		if closeErr := s.closeAfter(before, st); l.err == nil && closeErr != nil {
			l.err = closeErr
		}
	}
	switch {
	case l.err != nil:
		return l.err
	case l.feed.copyErr != nil:
		return l.feed.copyErr
	}
	return l.app.ended(err)
}

// take is the analysis' sink: it asks the filter and shows what passes.
func (l *listing) take(r *analyze.Record) {
	if l.feed.stopped || l.err != nil {
		return
	}
	if r.Frame == nil && r.Datagram.Bytes == nil && !l.whole {
		return // what a flow's end settled is no packet
	}
	l.reading.Start, l.reading.Previous = l.feed.start, l.feed.previous
	x := l.reading.Take(r)
	if !l.filter.Match(x) {
		return
	}
	if l.saved != nil && r.Frame != nil {
		l.err = l.saved.write(r.Frame)
	} else if l.saved != nil && !l.once && r.Flow.Transport == capture.UDP && r.Datagram.Bytes != nil {
		// The survey lacks the flow, so the datagram was held and its frame is gone.
		l.err = fmt.Errorf("frame %d passes -Y, but its flow ended early for want of memory: "+
			"-w cannot write it; give more by --memory", r.Datagram.Ref.Frame())
	}
	if l.err == nil && l.show != nil {
		l.err = l.show(x, r)
	}
	if l.shown++; l.err != nil || l.shown == l.live.count {
		l.feed.stop()
	}
}

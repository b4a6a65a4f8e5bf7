package reader

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Listing reads recordings, or an interface, packet by packet.
type Listing struct {
	App    *app.App
	Live   *LiveFlags
	Filter *filter.Filter
	Needs  filter.Needs // what the output needs, in addition to the filter
	Whole  bool         // Show also receives records that are no packets: what the end of a flow settled
	// Show prints a packet that passed the filter.
	Show func(*filter.Record, *analyze.Record) error
	// Begin is called before each recording. It may be nil.
	Begin func(*Recording) error
	End   func() error // called after the last packet; may be nil

	From    *Recording // what is read now; nil for interfaces
	Reader  *Reader
	Reading filter.Reading
	Once    bool   // read files like live traffic: in one run, printing at once
	seen    uint64 // packets that the filter was asked about
	shown   uint64
	err     error       // the error of Show
	saved   *Save       // the file of passed packets; nil if all packets are saved
	wrote   machine.Ref // the last frame in it
}

// FilterFlag registers -Y with a completion of field names.
func FilterFlag(a *app.App, c *cobra.Command, text *string) {
	c.Flags().StringVarP(text, "display-filter", "Y", "",
		"show what matches a display `FILTER` only (see ackscope fields)")
	_ = c.RegisterFlagCompletionFunc("display-filter", a.CompleteFilter)
}

// Compile compiles the filter of -Y. Its errors show the position.
func Compile(a *app.App, text string) (*filter.Filter, error) {
	f, err := a.Table().Compile(text)
	if err != nil {
		return nil, fmt.Errorf("-Y: %w", err)
	}
	return f, nil
}

// Run lists everything. The error is a failure, or how the capture ended.
func (l *Listing) Run(args []string) error {
	a := l.App
	if err := l.Live.Check(); err != nil {
		return err
	}
	if len(l.Live.Devices) > 0 {
		if len(args)+len(a.Flags.Read) > 0 {
			return ErrIAndFile
		}
		return l.runLive()
	}
	list, failed, err := recordings(a, args)
	if err != nil {
		return err
	}
	if l.Live.Write != "" && len(list) > 1 {
		return errApart("-w "+l.Live.Write, len(list))
	}
	err = each(a, list, failed, func(r *Recording) error {
		if l.shown > 0 && l.shown == l.Live.Count {
			return errEnough
		}
		return l.Read(r)
	})
	if err != nil && Unread(err) == nil {
		return err
	}
	if l.shown == 0 && l.Filter.String() != "" && l.seen > 0 {
		a.Remark("the filter let none of " + show.Plural(l.seen, "packet") + " pass")
	} else if l.seen == 0 && err == nil {
		a.Remark("no packets: the capture has none")
	}
	return errors.Join(err, l.close())
}

// Read lists a recording. The error is a failure, or how the capture ended.
func (l *Listing) Read(from *Recording) (err error) {
	a := l.App
	l.From = from
	o, err := a.Options()
	if err != nil {
		return err
	}
	keep := capture.KeepPipes
	if l.Once {
		keep = capture.KeepNothing
	}
	needs, passes := l.Needs|l.Filter.Needs(), 0
	if !l.Once && needs != 0 {
		passes = 2
		if l.Filter.Needs()&filter.NeedHindsight != 0 {
			passes = 3
		}
	}
	if l.Once {
		if err := NoHindsight(l.Filter); err != nil {
			return err
		}
	}
	if l.Reader, err = Open(a, from, Options{Keep: keep, Passes: passes}); err != nil {
		return err
	}
	defer l.Reader.Close()
	if l.Live.Write != "" {
		if l.saved, err = NewCopy(a, l.Live.Write, l.Live.Format, l.Reader.In); err != nil {
			return err
		}
	}
	if l.Begin != nil {
		if err := l.Begin(from); err != nil {
			return err
		}
	}
	l.Reading = filter.Reading{FileName: l.Reader.In.FileName, Join: needs&filter.NeedFields != 0}
	switch {
	case l.Once && needs == 0:
		err = l.scan(&flushing{l.Reader, a}, o.Decode)
	case l.Once:
		if err = l.bound(&o); err != nil {
			return err
		}
		_, err = analyze.Run(&flushing{l.Reader, a}, o)
	case needs == 0:
		err = l.scan(l.Reader, o.Decode)
	case l.Filter.Needs()&filter.NeedHindsight != 0:
		err = l.study(o)
	default:
		o.Sink, o.NoEvents, o.Untracked, o.Detached = l.take, l.noEvents(), l.untracked(), l.detached()
		_, err = l.Reader.Study(o)
	}
	return l.finish(err, nil)
}

// noEvents reports whether neither the filter nor the output reads events. Messages say more where
// events are asked for.
func (l *Listing) noEvents() bool {
	return !l.Whole && (l.Needs|l.Filter.Needs())&(filter.NeedEvents|filter.NeedMessages) == 0
}

// untracked reports whether neither the filter nor the output reads anything that trackers tell. Flows and decoded
// fields come from the first run.
func (l *Listing) untracked() bool {
	return !l.Whole && (l.Needs|l.Filter.Needs())&^(filter.NeedFlow|filter.NeedFields) == 0
}

// detached reports whether packets can be listed some packets behind their analysis.
func (l *Listing) detached() bool { return !(l.Needs | l.Filter.Needs()).Live() }

// study lists by a filter that asks for what only later packets show.
func (l *Listing) study(o analyze.Options) error {
	defer l.Reader.Done()
	first, err := analyze.Learn(l.Reader, o)
	if err != nil {
		return err
	}
	o.Survey = first.Survey()
	if l.Reading.Hindsight, err = Hindsight(l.App, l.Reader, o, l.Filter.Needs()); err != nil {
		return err
	}
	o.Sink, o.NoEvents, o.Detached = l.take, l.noEvents(), l.detached()
	_, err = analyze.Run(l.Reader, o)
	return err
}

// Hindsight reads the capture for what a filter needs of later packets, and rewinds. o has the
// survey of an earlier run.
func Hindsight(a *app.App, src *Reader, o analyze.Options, needs filter.Needs) (*filter.Hindsight, error) {
	room := a.Share(4)
	h := filter.NewHindsight(needs, room)
	o.Gone, o.Detached = nil, true
	o.Sink = func(r *analyze.Record) {
		if h.Take(r); h.Full() {
			src.Stop()
		}
	}
	_, err := analyze.Run(src, o)
	var cut *capture.CutError
	var damaged *capture.DamageError
	if err != nil && !errors.As(err, &cut) && !errors.As(err, &damaged) {
		return nil, err
	}
	if h.Full() {
		return nil, &app.RoomError{What: "fates, messages and events of packets, which the filter asks for,", Room: room}
	}
	return h, src.Rewind()
}

// NoHindsight refuses a filter that asks for the fate of packets where a capture is read once.
func NoHindsight(f *filter.Filter) error {
	if f.Needs()&filter.NeedFate == 0 {
		return nil
	}
	return errors.New("-Y: fate is known only from later packets: expected a file, and neither -i nor --live")
}

// close ends the listing.
func (l *Listing) close() error {
	if l.End != nil {
		return l.End()
	}
	return nil
}

// scan reads without analysis: in one run, and without flows.
func (l *Listing) scan(source capture.Source, o capture.DecodeOptions) error {
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
		r.Start, r.Before = l.Reader.Start, l.Reader.Previous
		r.Datagram.At, r.Datagram.Ref, r.Datagram.Bytes, r.Datagram.Length = p.At, p.Ref, p.Payload, p.Length
		l.take(&r)
	}
}

func (l *Listing) runLive() error {
	a := l.App
	o, err := a.Options()
	if err != nil {
		return err
	}
	if err := NoHindsight(l.Filter); err != nil {
		return err
	}
	if l.Live.Write != "" && l.Filter.String() != "" {
		return errors.New("-Y with -w on a live capture: expected one of them, so that no packet is lost for good (filter " +
			"the file afterwards)")
	}
	if l.Reader, err = l.Live.start(a, a.Warn, func() error { return nil }); err != nil {
		return err
	}
	if l.Live.Write != "" { // count the packets read, not those that pass
		l.Reader.Most = Least(l.Reader.Most, l.Live.Count)
	}
	needs := l.Needs | l.Filter.Needs()
	l.Reading.Join = needs&filter.NeedFields != 0
	if needs == 0 {
		err = l.scan(&flushing{l.Reader, a}, o.Decode)
	} else {
		if err = l.bound(&o); err == nil {
			_, err = analyze.Run(&flushing{l.Reader, a}, o)
		}
	}
	st, closeErr := l.Reader.EndLive()
	if err := l.finish(errors.Join(err, closeErr), st); err != nil {
		return err
	}
	return l.close()
}

// bound limits the analysis of traffic that may never end.
func (l *Listing) bound(o *analyze.Options) error {
	limits, memory, err := l.App.LiveLimits()
	if err != nil {
		return err
	}
	o.Sink, o.NoEvents, o.Limits = l.take, l.noEvents(), limits
	debug.SetMemoryLimit(memory)
	return nil
}

// Least returns the smaller limit, where 0 means no limit.
func Least(a, b uint64) uint64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// flushing writes the buffered output before it waits for the next frame, so
// that live output appears at once.
type flushing struct {
	*Reader
	app *app.App
}

// MayReadAhead implements analyze.ReadAhead: the output must not wait.
func (f *flushing) MayReadAhead() bool { return false }

// Next flushes the output and returns the next frame.
func (f *flushing) Next(fr *capture.Frame) error {
	if err := f.app.Flush(); err != nil {
		return err
	}
	return f.Reader.Next(fr)
}

func (l *Listing) finish(err error, st []capture.Statistics) error {
	for _, s := range []*Save{l.saved, l.Reader.Save} {
		if s == nil {
			continue
		}
		before := l.err
		if before == nil {
			before = err
		}
		if closeErr := s.CloseAfter(before, st); l.err == nil && closeErr != nil {
			l.err = closeErr
		}
	}
	switch {
	case l.err != nil:
		return l.err
	case l.Reader.SaveErr != nil:
		return l.Reader.SaveErr
	}
	return l.App.Ended(err)
}

// take is the sink of the analysis. It applies the filter and shows the packets
// that pass.
func (l *Listing) take(r *analyze.Record) {
	if l.Reader.stopped.Load() || l.err != nil {
		return
	}
	if r.Frame == nil && r.Datagram.Bytes == nil && !l.Whole {
		return // the end of a flow is not a packet
	}
	l.seen++
	l.Reading.Start, l.Reading.Previous = r.Start, r.Before
	x := l.Reading.Take(r)
	if !l.Filter.Match(x) {
		return
	}
	if l.saved != nil && r.Frame != nil {
		if r.Frame.Ref != l.wrote { // a frame can hold several messages or datagrams
			l.wrote = r.Frame.Ref
			l.err = l.saved.Write(r.Frame)
		}
	} else if l.saved != nil && !l.Once && r.Flow.Transport == capture.UDP && r.Datagram.Bytes != nil {
		// The survey does not know the flow. So the datagram was held, and its
		// frame is gone.
		l.err = fmt.Errorf("frame %d passes -Y, but its flow ended early because memory ran out: "+
			"-w cannot write it; give more by --memory", r.Datagram.Ref.Frame())
	}
	if l.err == nil && l.Show != nil {
		if l.Reading.Hindsight != nil {
			r.Events = x.Events // the same events as the filter was asked about
		}
		l.err = l.Show(x, r)
	}
	if l.shown++; l.err != nil || l.shown == l.Live.Count {
		l.Reader.Stop()
	}
}

package ring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Pair selects the frames between two endpoints, in both directions. A port 0 stands for all ports
// of its host, so {10.0.0.1:0, 10.0.0.2:0} are two hosts, and two ports make a flow. The zero Pair
// selects all frames.
//
// Fragments of IP datagrams are selected with their datagram, and ICMP errors with the packet that
// they quote. Fragments whose datagram never became whole are selected by their hosts.
type Pair struct{ A, B netip.AddrPort }

// Span says what to cut.
type Span struct {
	From, To machine.Instant // both belong to the span
	Pair     Pair
	Bytes    int64 // most bytes of the cut; 0 for no bound
}

// Cut is what a cut has, and what it lacks.
type Cut struct {
	Frames      uint64
	Bytes       int64
	First, Last machine.Instant // of the frames that were written; both 0 without frames
	// Dropped is how many packets the capturing system lost while it wrote the files of the span.
	// The span lacks at most so many. Uncounted says that some file does not tell.
	Dropped   uint64
	Uncounted bool
	// Unjoined counts the fragments that were selected by their hosts only.
	Unjoined uint64
	Missing  []Gap // in the order of the files
}

// Gap is a part of a span that the ring does not have.
type Gap struct {
	Reason   Reason
	From, To machine.Instant // within the span
	File     string          // the file that is concerned; may be empty
	Err      error           // of reading it; may be nil
}

// Reason says why frames of a span are missing.
type Reason uint8

const (
	// ReasonBefore: the ring begins later. Its older files were removed, or it was begun later.
	ReasonBefore Reason = iota
	// ReasonAfter: the ring ends earlier. The frames have not come yet, or never will.
	ReasonAfter
	// ReasonRestart: the program ended there and began again.
	ReasonRestart
	// ReasonRemoved: files between others are gone, or went while the cut was being made.
	ReasonRemoved
	// ReasonCut: the file ends within a record, as after a kill.
	ReasonCut
	// ReasonDamaged: the file cannot be read, or not to its end.
	ReasonDamaged
	// ReasonBound: Span.Bytes ended the cut.
	ReasonBound
)

// Cut writes the frames of a span as a pcapng capture. The comments of its section say what is
// missing, as the result does. What shows only while the files are read stands in a section at the
// end. The error is one of writing or of the context: missing frames are none.
func (r *Ring) Cut(ctx context.Context, w io.Writer, s Span) (*Cut, error) {
	list, err := r.views()
	if err != nil {
		return nil, err
	}
	r.survey(list)
	c := &cutting{ctx: ctx, span: s, cut: &Cut{Missing: gaps(list, s.From, s.To)}, ids: map[described]int{}}
	c.selector = newSelector(s.Pair, c.emit)
	c.known = len(c.cut.Missing)
	c.out, err = capture.NewWriter(w, capture.WriterOptions{Application: "ackscope", Comments: comments(c.cut.Missing)})
	for i := range list {
		if v := &list[i]; err == nil && v.frames > 0 && v.overlaps(s.From, s.To) {
			err = c.read(v)
		}
	}
	if err == nil {
		err = c.selector.finish()
	}
	if errors.Is(err, errBound) {
		err = nil
	}
	if err == nil {
		err = c.end()
	}
	if err != nil {
		return nil, err
	}
	return c.cut, nil
}

// mostComments bounds the comments of a cut. The result has all gaps.
const mostComments = 64

// comments returns what the section says of gaps.
func comments(list []Gap) (text []string) {
	for i := range list {
		if i == mostComments {
			return append(text, fmt.Sprintf("missing: and %d more", len(list)-i))
		}
		text = append(text, list[i].String())
	}
	return text
}

// cutting is a cut that is being written.
type cutting struct {
	ctx      context.Context
	span     Span
	cut      *Cut
	known    int // gaps that the first section has
	out      *capture.Writer
	selector *selector
	ids      map[described]int // interfaces of the cut
	counts   []capture.Statistics
	frames   int
}

// described is what makes two interfaces of the ring one of the cut.
type described struct {
	name, description, filter, os string
	link, snap                    uint32
	resolution                    capture.Resolution
}

// errBound ends a cut that has reached Span.Bytes.
var errBound = errors.New("ring: the bound of the cut")

// endBytes is what the end of a cut takes, beside the counts.
const endBytes = 4 << 10

// emit writes a selected frame, if it is one of the span.
func (c *cutting) emit(f *capture.Frame, id int) error {
	if f.At < c.span.From || f.At > c.span.To {
		return nil
	}
	room := c.out.Written() + frameBytes(f) + int64(len(c.counts))*statisticsBytes + endBytes
	if c.span.Bytes > 0 && room > c.span.Bytes {
		c.cut.Missing = append(c.cut.Missing, Gap{Reason: ReasonBound, From: f.At, To: c.span.To})
		return errBound
	}
	copied := *f
	copied.Interface, copied.Ref = id, machine.Ref(0)
	if err := c.out.WriteFrame(&copied); err != nil {
		return err
	}
	x := c.cut
	if x.Frames == 0 {
		x.First, x.Last = f.At, f.At
	}
	x.First, x.Last = min(x.First, f.At), max(x.Last, f.At)
	x.Frames++
	return nil
}

// ctxEvery is how many frames are read between two looks at the context.
const ctxEvery = 1 << 10

// read reads a file, as far as it goes.
func (c *cutting) read(v *view) error {
	lost := func(err error) {
		reason := ReasonDamaged
		if errors.Is(err, fs.ErrNotExist) {
			reason = ReasonRemoved
		}
		c.cut.Missing = append(c.cut.Missing, Gap{
			Reason: reason, From: max(v.first, c.span.From), To: min(v.last, c.span.To), File: v.path, Err: err,
		})
	}
	in, err := capture.Open([]string{v.path}, capture.Options{})
	if err != nil {
		lost(err)
		return nil
	}
	defer in.Close()
	in.Host().KeepRecent()
	var f capture.Frame
	var ids []int // of the file's interfaces in the cut; -1 for those without a frame
	read := uint64(0)
	for ; !v.open || read < v.frames; read++ { // what was written since then may be half a record
		if c.frames++; c.frames%ctxEvery == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		if err := in.Next(&f); err != nil {
			if !errors.Is(err, io.EOF) && v.err == nil {
				lost(err)
			}
			break
		}
		for len(ids) <= f.Interface {
			ids = append(ids, -1)
		}
		if ids[f.Interface] < 0 {
			if ids[f.Interface], err = c.add(in.Interfaces(0)[f.Interface], f.LinkType); err != nil {
				return err
			}
		}
		if err := c.selector.take(&f, ids[f.Interface]); err != nil {
			return err
		}
	}
	c.count(v, in, ids)
	for _, s := range in.Host().Recent(c.span.From.Add(-sampleSlack), c.span.To.Add(sampleSlack)) {
		if room := c.out.Written() + sampleBytes(s) + endBytes; c.span.Bytes > 0 && room > c.span.Bytes {
			break
		}
		if err := c.out.WriteHost(s); err != nil {
			return err
		}
	}
	return nil
}

// sampleSlack is how far outside of a span a sample of the host belongs to it.
// Source: choice, two of the seconds between samples
const sampleSlack = 2 * stepBack

// add returns the cut's interface for one of a file.
func (c *cutting) add(in capture.Interface, link uint32) (int, error) {
	key := described{in.Name, in.Description, in.Filter, in.OS, link, in.SnapLength, in.Resolution}
	if id, ok := c.ids[key]; ok {
		return id, nil
	}
	in.LinkType, in.Statistics = link, nil
	id, err := c.out.AddInterface(in)
	if err != nil {
		return 0, err
	}
	c.ids[key] = id
	c.counts = append(c.counts, capture.Statistics{})
	return id, nil
}

// count adds the packets that were dropped while a file was written.
func (c *cutting) count(v *view, in *capture.Input, ids []int) {
	const told = capture.KnownDropped | capture.KnownOSDropped
	for i, x := range in.Interfaces(0) {
		if i >= len(ids) || ids[i] < 0 {
			continue
		}
		st := x.Statistics
		if v.open {
			if own, ok := v.counts[i]; ok {
				st = &own
			}
		}
		if st == nil || st.Known&told == 0 {
			c.cut.Uncounted = true
			continue
		}
		sum := &c.counts[ids[i]]
		sum.Dropped, sum.OSDropped, sum.Known = sum.Dropped+st.Dropped, sum.OSDropped+st.OSDropped, sum.Known|st.Known&told
	}
}

// end writes the counts, and what was found missing on the way.
func (c *cutting) end() error {
	for id, st := range c.counts {
		c.cut.Dropped += st.Dropped + st.OSDropped
		if !c.cut.Uncounted { // else readers would take the counts for whole
			c.out.SetStatistics(id, st)
		}
	}
	c.cut.Unjoined = c.selector.unjoined
	if late := c.cut.Missing[c.known:]; len(late) > 0 {
		section := capture.Section{Application: "ackscope", Comments: comments(late[:min(len(late), lateComments)])}
		if err := c.out.BeginSection(section); err != nil {
			return err
		}
	}
	if err := c.out.Close(); err != nil {
		return err
	}
	c.cut.Bytes = c.out.Written()
	return nil
}

// lateComments bounds the comments at the end, so that they fit endBytes.
const lateComments = 8

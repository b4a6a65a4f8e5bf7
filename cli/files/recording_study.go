//go:build !js

package files

import (
	"bytes"
	"cmp"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/overview"
	"github.com/ackscope/ackscope/recorder"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/show"
)

// recordingJob analyses one recording as every command will that reads its file.
type recordingJob struct {
	app        *app.App
	options    analyze.Options
	recording  *recorder.Recording
	why        *asked
	dropped    uint64 // packets that the capture lacks of its time
	live       bool
	interfaces map[int]capture.Interface
	samples    []*host.Sample // of the capturing host, in order of time
	path       string
	size       int64 // of the capture file

	source   frameSource
	heads    int // frames of the source that came long before the others
	session  *analyze.Session
	found    *analyze.Finding // as the recording shows it; nil if it does not, or if nothing of the kind was asked
	shown    int              // index of the frame that shows the trouble
	overview *overview.Capture
	state    []string // what both sides knew after that frame
}

// study runs the analysis. The first frames of the flows join only where the finding does not show without them. For
// between them and the others the recording lacks packets, which no network has lost.
func (j *recordingJob) study() error {
	r := j.recording
	if err := j.try(r.Frames, 0); err != nil {
		return err
	}
	if len(r.Heads) > 0 && (j.why.rule != nil && j.found == nil || !j.known()) {
		alone := *j
		heads := slices.Clone(r.Heads)
		slices.SortStableFunc(heads, func(x, y recorder.Frame) int { return cmp.Compare(x.At, y.At) })
		if err := j.try(append(heads, r.Frames...), len(heads)); err != nil {
			return err
		}
		if j.why.rule != nil && j.found == nil || !j.known() {
			*j = alone
		}
	}
	j.place()
	return j.look()
}

// known reports whether a protocol explains the flow that triggered, or there is none.
func (j *recordingJob) known() bool {
	if j.why.flow == 0 {
		return true
	}
	for _, f := range j.session.Flows() {
		if f.Protocol != nil && j.same(f) {
			return true
		}
	}
	return false
}

// same reports whether a flow has the addresses of the one that triggered.
func (j *recordingJob) same(f *analyze.Flow) bool {
	x := j.why.addresses
	return f.A == x[0] && f.B == x[1] || f.A == x[1] && f.B == x[0]
}

// try analyses some frames, and looks for the finding in them.
func (j *recordingJob) try(frames []recorder.Frame, heads int) error {
	j.source = frameSource{frames: frames, dropped: j.dropped, counted: j.live, interfaces: j.interfaces}
	for _, s := range j.samples {
		j.source.host.Add(s)
	}
	o := j.options
	learned, err := analyze.Learn(&j.source, o)
	if err != nil {
		return err
	}
	o.Survey = learned.Survey()
	in := &overview.Input{
		Name: filepath.Base(j.path), Messages: &overview.Messages{}, Ends: map[int]overview.End{},
	}
	endings := j.app.NewEndings()
	o.Sink = func(r *analyze.Record) {
		in.Messages.Take(r)
		endings.Take(r)
	}
	if in.Session, err = analyze.Run(&j.source, o); err != nil {
		return err
	}
	_, last := in.Session.Span()
	for _, e := range endings.Ended(last) {
		in.Ends[e.Flow.ID] = overview.End{Silent: e.Silent, Failed: e.Failed, Story: e.Story}
	}
	o.Sink = nil
	if err := j.source.Rewind(); err != nil {
		return err
	}
	file, err := replay.Run(in.Name, &j.source, replay.Options{Analysis: o, Survey: o.Survey})
	if err != nil {
		return err
	}
	in.Replay = overview.NewVerdicts(file)
	j.session, j.heads, j.found = in.Session, heads, nil
	j.overview = overview.New(in, overview.FlowsShown)
	j.options.Survey = o.Survey
	if j.why.rule == nil {
		return nil
	}
	for _, f := range j.session.Flows() {
		for _, x := range f.Findings() {
			if x.Rule == j.why.rule && j.same(f) && f.Addr(x.Side) == j.asker() &&
				(j.found == nil || x.Certainty == j.why.certainty) {
				j.found = x
			}
		}
	}
	return nil
}

// asker is the address of the side that the finding is about.
func (j *recordingJob) asker() netip.AddrPort { return j.why.addresses[j.why.side] }

// place finds the frame that shows the trouble. It is the frame of the finding that is nearest to the trigger. If
// there is none, it is the first frame from the time of the trigger on.
func (j *recordingJob) place() {
	at := j.recording.First.At
	frames := j.source.frames
	j.shown = -1
	if j.found != nil {
		for _, ref := range j.found.Refs {
			i := int(ref.Frame()) - 1
			if i < 0 || i >= len(frames) {
				continue
			}
			if j.shown < 0 || frames[i].At.Sub(at).Abs() < frames[j.shown].At.Sub(at).Abs() {
				j.shown = i
			}
		}
	}
	for i := j.heads; i < len(frames) && j.shown < 0; i++ {
		if frames[i].At >= at {
			j.shown = i
		}
	}
	if j.shown < 0 {
		j.shown = len(frames) - 1
	}
}

// look notes what both sides knew after the frame that shows the trouble.
func (j *recordingJob) look() error {
	if j.shown < 0 {
		return nil
	}
	o := j.options
	o.Sink, o.Untracked = nil, false
	o.Fed = func(f *capture.Frame, _ *capture.Packet, flow *analyze.Flow) {
		if f.Ref.Frame() != uint64(j.shown+1) || flow == nil {
			return
		}
		var views [2]machine.View
		for side := range views {
			if !flow.Inspect(machine.Side(side), &views[side]) {
				return
			}
		}
		const rows = 4 // of each window: the newest 128 packets
		s := show.State{Flow: flow, Sides: []machine.Side{machine.A, machine.B}, Rows: rows}
		for side := range views {
			j.state = append(j.state, s.Block(machine.Side(side), &views[side], &views[1-side]).Lines...)
		}
		j.state = append(j.state, s.Beliefs(&views)...)
		for i := range j.state {
			j.state[i] = strings.TrimRight(j.state[i], " ")
		}
	}
	if err := j.source.Rewind(); err != nil {
		return err
	}
	_, err := analyze.Run(&j.source, o)
	return err
}

// pages is the overview as text, line by line.
func (j *recordingJob) pages() []string {
	var b bytes.Buffer
	_ = j.overview.WriteText(&b, &overview.Page{Files: []string{filepath.Base(j.path)}}) // a buffer takes all
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// frameSource is a capture in memory.
type frameSource struct {
	frames  []recorder.Frame
	next    int
	dropped uint64
	counted bool

	host       host.Timeline
	interfaces map[int]capture.Interface
}

// Host implements analyze.Hosted.
func (s *frameSource) Host() *host.Timeline { return &s.host }

// InterfaceName implements analyze.Hosted.
func (s *frameSource) InterfaceName(_, index int) string { return s.interfaces[index].Name }

// Next implements capture.Source.
func (s *frameSource) Next(f *capture.Frame) error {
	if s.next == len(s.frames) {
		return io.EOF
	}
	*f = s.frame(s.next)
	s.next++
	return nil
}

// frame returns the i-th frame.
func (s *frameSource) frame(i int) capture.Frame {
	f := &s.frames[i]
	return capture.Frame{
		Ref: machine.MakeRef(0, uint64(i+1)), At: f.At, Offset: -1, Interface: f.Interface, LinkType: f.Link,
		Length: f.Length, Data: f.Data, Options: f.Options, BigEndian: f.BigEndian,
	}
}

// Close implements capture.Source.
func (s *frameSource) Close() error { return nil }

// Rewind implements analyze.Rewinder.
func (s *frameSource) Rewind() error {
	s.next = 0
	return nil
}

// Dropped implements analyze.Dropper.
func (s *frameSource) Dropped() uint64 { return s.dropped }

// Counted implements analyze.Dropper.
func (s *frameSource) Counted() bool { return s.counted }

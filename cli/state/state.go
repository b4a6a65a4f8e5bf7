package state

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// stateFlags are the flags of the state command.
type stateFlags struct {
	flow string
	at   string
	side string
	diff bool
	rows int
}

// StateCommand builds `ackscope state`.
func StateCommand(a *app.App) *cobra.Command {
	f := &stateFlags{}
	c := &cobra.Command{
		Use:   "state [FILE...]",
		Short: "What both sides of a flow knew at a packet, or what changed between two",
		Long: `state draws both sides of a flow as they were after a frame: what each side had sent, what it
knew to have arrived, what it had received, and its estimates. "captured here" is the side at
which the capture was taken. What the other side knew is inferred from its acks. What the capture
does not show is unknown (?), never guessed. A figure without a grade is proven by the capture.

With --diff, two frames follow, then the files; what changed between them is shown.
Of several captures, FILE:NUMBER names a flow and FILE:FRAME a frame: FILE is the name of a
file, or its position from 1.`,
		Example: `  ackscope state --flow 1 --at 4711 match.pcapng
  ackscope state --flow 1 --diff 4700 4711 match.pcapng
  ackscope state --flow 1 --at 4711 --side a --json match.pcapng
  ackscope state --flow server.pcapng:1 --at 4711 client.pcapng server.pcapng`,
		RunE: func(_ *cobra.Command, args []string) error { return state(a, f, args) },
	}
	reader.JoinFlag(a, c)
	p := c.Flags()
	p.StringVar(&f.flow, "flow", "",
		"the flow, by its `NUMBER` as flows lists it, or FILE:NUMBER (default: that of the frame)")
	p.StringVar(&f.at, "at", "", "the `FRAME`, or FILE:FRAME (default: the flow's last)")
	p.StringVar(&f.side, "side", "", "show one side only: `a|b`")
	p.BoolVar(&f.diff, "diff", false, "show what changed between two frames: --diff FRAME1 FRAME2 [FILE...]")
	p.IntVar(&f.rows, "rows", 4, "rows of 32 packets to show of each window, the newest; 0 for all")
	_ = c.RegisterFlagCompletionFunc("side", app.CompleteWords("a", "b"))
	return c
}

func state(a *app.App, f *stateFlags, args []string) error {
	sides := []machine.Side{machine.A, machine.B}
	switch f.side {
	case "":
	case "a":
		sides = sides[:1]
	case "b":
		sides = sides[1:]
	default:
		return fmt.Errorf("--side %q: expected a or b", f.side)
	}
	var moments []string
	if f.diff {
		if len(args) < 2 || f.at != "" {
			return errors.New("--diff: expected two frames and then the files, as in `ackscope state --flow 1 --diff 4700 " +
				"4711 match.pcapng`")
		}
		moments, args = args[:2], args[2:]
	} else if f.at != "" {
		moments = []string{f.at}
	}
	name, err := reader.ParseFlow(f.flow)
	if err != nil {
		return err
	}
	frames, err := parseFrames(moments, f.diff)
	if err != nil {
		return err
	}
	list, err := reader.Recordings(a, args)
	if err != nil {
		return err
	}
	from, refs, err := placeFrames(list, name, frames)
	if err != nil {
		return err
	}
	t, err := travel(a, from, refs)
	if t == nil {
		return err
	}
	defer t.in.Close()
	flow, err2 := t.Choose(name.Number, refs)
	if err2 != nil {
		return errors.Join(err2, a.Ended(err))
	}
	if len(refs) == 0 {
		refs = append(refs, flow.LastRef)
		t.moments = append(t.moments, moment{ref: flow.LastRef, at: flow.Last})
	}
	views := make([][2]machine.View, len(refs))
	for i, ref := range refs {
		tracker, err := t.timeline.StateAt(flow, ref)
		if err != nil {
			return err
		}
		for _, side := range sides {
			tracker.Inspect(side, &views[i][side])
		}
	}
	p := &statePrinter{app: a, travel: t, State: show.State{Flow: flow, Sides: sides, Rows: f.rows}}
	if p.Paint, err2 = a.Painter(); err2 != nil {
		return err2
	}
	switch {
	case f.diff && a.Flags.JSON:
		err2 = p.diffJSON(refs, views)
	case f.diff:
		p.diff(refs, views)
	case a.Flags.JSON:
		err2 = p.json(refs[0], &views[0])
	default:
		p.picture(refs[0], &views[0])
	}
	if err2 != nil {
		return err2
	}
	return a.Ended(err)
}

// frameName is a frame as the command line names it.
type frameName struct {
	file  string // empty if not given
	frame uint64
}

// parseFrames parses texts of the form FRAME or FILE:FRAME.
func parseFrames(texts []string, diff bool) (frames []frameName, err error) {
	for _, text := range texts {
		file, number, ok := reader.CutLast(text)
		n, err := strconv.ParseUint(number, 10, 39)
		if err != nil || n == 0 || ok && file == "" {
			err := fmt.Errorf("frame %q: expected a number from 1, or FILE:FRAME", text)
			if diff {
				err = fmt.Errorf("--diff: expected two frames and then the files: %w", err)
			}
			return nil, err
		}
		frames = append(frames, frameName{file, n})
	}
	return frames, nil
}

// placeFrames returns the recording of a flow and frames, and the positions of
// the frames in it.
func placeFrames(list []*reader.Recording, flow reader.FlowName, frames []frameName) (from *reader.Recording,
	refs []machine.Ref, err error,
) {
	file := 0 // the file of frames that name none
	if flow.File != "" {
		if from, file, err = reader.RecordingOf(list, "--flow", flow.File); err != nil {
			return nil, nil, err
		}
	} else if len(list) == 1 {
		from = list[0]
	}
	for _, x := range frames {
		at := file
		if x.file != "" {
			var of *reader.Recording
			if of, at, err = reader.RecordingOf(list, "frame "+x.file+":"+strconv.FormatUint(x.frame, 10), x.file); err != nil {
				return nil, nil, err
			}
			if from != nil && of != from {
				return nil, nil,
					fmt.Errorf("frame %s:%d is of another capture than the rest of the command line: expected all of one",
						x.file, x.frame)
			}
			from = of
		} else if from == nil {
			return nil, nil,
				fmt.Errorf("frame %d: %d captures are read, and frame numbers begin at 1 in each: expected FILE:FRAME",
					x.frame, len(list))
		}
		refs = append(refs, machine.MakeRef(at, x.frame))
	}
	if from == nil {
		from, err = reader.OfFlow(list, flow)
	}
	return from, refs, err
}

// Travel is a capture that was read to its end, and can go to any packet.
type Travel struct {
	from     *reader.Recording
	in       *reader.Reader
	Session  *analyze.Session
	timeline *analyze.Timeline
	moments  []moment
	// odd is what only a whole run finds, at the frames that show it; nil to forget it.
	odd map[machine.Ref][]machine.Anomaly
}

// moment is what the pictures show of a frame itself.
type moment struct {
	ref  machine.Ref
	at   machine.Instant
	flow *analyze.Flow // nil if the frame belongs to no flow
	from machine.Side
	info string
}

// travel reads captures for random access, and notes the frames refs on the
// way. The error is how reading ended.
func travel(a *app.App, from *reader.Recording, refs []machine.Ref) (*Travel, error) {
	return (&Travel{from: from}).read(a, refs)
}

// oddCost is about how many bytes one of the frames in odd takes: an anomaly, and its place in the
// table.
const oddCost = 256

func (t *Travel) read(a *app.App, refs []machine.Ref) (*Travel, error) {
	o, err := a.Options()
	if err != nil {
		return nil, err
	}
	from := t.from
	if t.in, err = reader.Open(a, from, reader.Options{Keep: capture.KeepAll, Passes: 2}); err != nil {
		return nil, err
	}
	t.timeline = analyze.NewTimeline(t.in.In)
	var full error
	room := a.Share(4)
	o.Gone = func(flow *analyze.Flow, why analyze.Reason) {
		t.timeline.Forget(flow)
		a.LetGo(flow, why)
	}
	o.Fed = func(frame *capture.Frame, p *capture.Packet, flow *analyze.Flow) {
		if t.timeline.Note(frame, p, flow); t.timeline.Size()+len(t.odd)*oddCost > room {
			full = &app.RoomError{What: "the places of frames, and states to begin from,", Room: room}
			t.in.Stop()
		}
	}
	o.Sink = func(r *analyze.Record) {
		t.timeline.Record(r)
		if t.odd != nil && r.Frame != nil {
			for i := range r.Anomalies {
				if a := &r.Anomalies[i]; slices.Contains(analyze.Rules, a.Rule) {
					t.odd[a.Ref] = append(t.odd[a.Ref], *a)
				}
			}
		}
		if slices.Contains(refs, r.Datagram.Ref) && r.Frame != nil {
			t.note(r)
		}
	}
	t.Session, err = t.in.Study(o)
	if full != nil {
		return nil, errors.Join(full, t.in.Close())
	}
	t.timeline.Attach(t.Session)
	return t, err
}

// note records what the picture shows of the frame itself.
func (t *Travel) note(r *analyze.Record) {
	m := moment{ref: r.Datagram.Ref, at: r.Datagram.At, flow: r.Flow, from: r.Datagram.From}
	if f := r.Flow; f != nil && f.Protocol != nil && len(r.Datagram.Bytes) > 0 {
		m.info = string(f.Protocol.Info(dissect.Context{Config: f.Config(), From: m.from}, &r.Datagram, nil))
	}
	t.moments = append(t.moments, m)
}

// moment returns what is known of a frame. It returns false if the capture does
// not contain the frame.
func (t *Travel) moment(ref machine.Ref) (moment, bool) {
	i := slices.IndexFunc(t.moments, func(m moment) bool { return m.ref == ref })
	if i < 0 {
		return moment{}, false
	}
	return t.moments[i], true
}

// Choose returns the flow: by number, by the last frame that has one, or the only flow with a
// protocol. With --diff, the last frame is the one that changed something.
func (t *Travel) Choose(number int, refs []machine.Ref) (*analyze.Flow, error) {
	flows := t.Session.Flows()
	if number != 0 {
		f := t.Session.Flow(number)
		switch begun := t.Session.Begun(); {
		case f != nil:
			return followed(f)
		case number >= 1 && uint64(number) <= begun:
			return nil, fmt.Errorf("--flow %d: it ended early because memory ran out: give more by --memory", number)
		default:
			return nil, fmt.Errorf("--flow %d: the capture has %s (`ackscope flows` lists them)", number,
				show.Plural(begun, "flow"))
		}
	}
	for _, ref := range slices.Backward(refs) {
		if f, ok := t.timeline.FlowAt(ref); ok {
			return followed(f)
		}
		if n, ok := t.timeline.Find(ref); ok && t.timeline.FlowID(n) > 0 {
			return nil, fmt.Errorf("frame %s is of flow %d, which ended early because memory ran out: give more by --memory",
				t.frame(ref), t.timeline.FlowID(n))
		}
	}
	var known []*analyze.Flow
	for _, f := range flows {
		if _, err := followed(f); err == nil {
			known = append(known, f)
		}
	}
	switch {
	case len(known) == 1:
		return known[0], nil
	case len(known) == 0:
		return nil, fmt.Errorf("no flow has a state to show: the capture has %s (`ackscope flows` says why)",
			show.Plural(t.Session.Begun(), "flow"))
	}
	return nil, fmt.Errorf("which flow? %d have a state: expected --flow NUMBER (`ackscope flows` lists them)", len(known))
}

// followed returns the flow, or an error if its sides have no state.
func followed(f *analyze.Flow) (*analyze.Flow, error) {
	if f.Protocol == nil {
		return nil, fmt.Errorf("flow %d has no state: %s", f.ID, f.Verdict.Reason)
	}
	if f.Protocol.NewTracker == nil {
		return nil, fmt.Errorf("flow %d has no state: %s is decoded, what its sides knew is not followed", f.ID,
			f.Protocol.Title)
	}
	return f, nil
}

// frame formats a frame's number, with its file's number if there are several
// files.
func (t *Travel) frame(ref machine.Ref) string {
	if t.in.In.Files() > 1 {
		return fmt.Sprintf("%d:%d", t.from.First+ref.File()+1, ref.Frame())
	}
	return strconv.FormatUint(ref.Frame(), 10)
}

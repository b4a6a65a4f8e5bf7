//go:build !js

package files

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/recorder"
	"github.com/ackscope/ackscope/ring"
	"github.com/ackscope/ackscope/show"
)

// deviceBits is how many bits of recorder.Frame.Interface number the interface; those above number the file.
const deviceBits = 20

// recordingRow writes recordings beside the capture: one at a time, while the reading goes on.
type recordingRow struct {
	app     *app.App
	run     *reader.Running
	options analyze.Options // of the analysis of a recording
	origin  reader.Origin
	folder  string

	number  int
	writing chan *saved // yields the recording that is being written; nil if there is none
	shelf   ring.Shelf
	written int
	removed int
	err     error
}

// saved is a recording that was written, or not.
type saved struct {
	line  string // for people
	json  []byte
	kept  ring.Kept
	err   error
	fault any // a panic of the analysis
}

func newRecordingRow(a *app.App, run *reader.Running, folder string, l *recordLimits) (*recordingRow, error) {
	w := &recordingRow{
		app: a, run: run, folder: folder, shelf: ring.Shelf{Files: l.files, Bytes: l.total},
	}
	var err error
	if w.options, err = a.Options(); err != nil {
		return nil, err
	}
	// An analysis of a recording beside that of the traffic: both must fit.
	w.options.Gone = nil
	w.options.Limits = a.Limits(app.JudgeCost)
	const part = 8
	w.options.Limits.Flows, w.options.Limits.Bytes = max(1, w.options.Limits.Flows/part),
		max(1, w.options.Limits.Bytes/part)
	if run.Reader.Live != nil {
		w.origin = run.Reader.Live.Origin()
	} else {
		w.origin = reader.OriginOf(run.Reader.In)
	}
	return w, nil
}

// sampleSlack is how far outside of a recording a sample of the host is recorded with it.
// Source: choice, two of the seconds between samples
const sampleSlack = 2 * time.Second

// save begins to write a recording. The one before has been written.
func (w *recordingRow) save(r *recorder.Recording, why *asked, dropped uint64) {
	w.number++
	j := &recordingJob{
		app: w.app, options: w.options, recording: r, why: why, dropped: dropped, live: w.run.Reader.Live != nil,
		interfaces: w.interfaces(r), samples: w.run.Host().Recent(r.From.Add(-sampleSlack), r.To.Add(sampleSlack)),
		path: filepath.Join(w.folder, fmt.Sprintf("%s-%05d-%s.pcapng",
			r.First.At.Time().Format("20060102T150405.000Z"), w.number, slug(why))),
	}
	w.writing = make(chan *saved, 1)
	go func(to chan<- *saved) {
		x := &saved{}
		defer func() {
			x.fault = recover()
			to <- x
		}()
		x.err = j.write(x)
	}(w.writing)
}

// slug is the part of a file's name that says why it was written.
func slug(why *asked) string {
	switch {
	case why.rule != nil:
		return why.rule.ID
	case why.word == userSignal:
		return strings.ToLower(userSignal)
	}
	return "condition"
}

// interfaces describes the interfaces of a recording's frames, by recorder.Frame.Interface.
func (w *recordingRow) interfaces(r *recorder.Recording) map[int]capture.Interface {
	list := map[int]capture.Interface{}
	for _, frames := range [][]recorder.Frame{r.Heads, r.Frames} {
		for i := range frames {
			f := &frames[i]
			if _, ok := list[f.Interface]; !ok {
				in := w.origin.Of(f.Interface>>deviceBits, f.Interface&(1<<deviceBits-1))
				in.LinkType, in.Statistics, in.OffsetSeconds = f.Link, nil, 0
				list[f.Interface] = in
			}
		}
	}
	return list
}

// wait waits until the recording that is being written is on the disk.
func (w *recordingRow) wait() {
	if w.writing != nil {
		w.take(<-w.writing)
	}
}

// poll takes a recording that has been written meanwhile.
func (w *recordingRow) poll() {
	select {
	case x := <-w.writing:
		w.take(x)
	default:
	}
}

// take says what was written, and makes room.
func (w *recordingRow) take(x *saved) {
	w.writing = nil
	if x.fault != nil {
		panic(x.fault) // the program reports it as any other fault of its own
	}
	if x.err != nil {
		w.app.Warn(fmt.Sprintf("recorder: %v: this recording is lost, the recorder goes on", x.err))
		w.err = errors.Join(w.err, x.err)
		return
	}
	w.written++
	w.shelf.Add(&x.kept)
	for old := w.shelf.Excess(); old != nil; old = w.shelf.Excess() {
		if err := old.Remove(); err != nil {
			w.err = errors.Join(w.err, fmt.Errorf("-b: %w", err))
		}
		w.removed++
	}
	out := w.app.Writer()
	if w.app.Flags.JSON {
		_, _ = out.Write(x.json) // an error stays with the writer
	} else {
		fmt.Fprintln(out, x.line)
	}
	if err := w.app.Flush(); err != nil && w.run.Err == nil {
		w.run.Err = err
	}
}

// write analyses the recording and writes its two files. They appear under their names when they are whole.
func (j *recordingJob) write(x *saved) error {
	if err := j.study(); err != nil {
		return err
	}
	text, err := j.app.Outputs.Whole(j.describedBy(), outfile.Payload)
	if err != nil {
		return err
	}
	frames, err := j.app.Outputs.Whole(j.path, outfile.Payload)
	if err != nil {
		return errors.Join(err, text.Abort())
	}
	text.Durable()
	frames.Durable()
	err = j.writeFrames(frames)
	x.json = j.json()
	if _, textErr := text.Write(x.json); err == nil {
		err = textErr
	}
	if err != nil {
		return errors.Join(err, text.Abort(), frames.Abort())
	}
	// The JSON is placed first: a capture never lacks it.
	if err := outfile.Commit(text, frames); err != nil {
		return err
	}
	x.kept = ring.Kept{Made: []outfile.Made{text.Made(), frames.Made()}, Bytes: j.size + int64(len(x.json))}
	x.line = j.line()
	return nil
}

// describedBy is the path of the JSON beside the capture.
func (j *recordingJob) describedBy() string { return strings.TrimSuffix(j.path, ".pcapng") + ".json" }

// writeFrames writes the capture with its comments.
func (j *recordingJob) writeFrames(to *outfile.File) error {
	out := bufio.NewWriterSize(to, 64<<10)
	samples := j.samples
	w, err := capture.NewWriter(out, capture.WriterOptions{Application: "ackscope", Comments: j.comments()})
	if err != nil {
		return err
	}
	ids := map[int]int{}
	for i := range j.source.frames {
		f := j.source.frame(i)
		id, ok := ids[f.Interface]
		if !ok {
			if id, err = w.AddInterface(j.interfaces[f.Interface]); err != nil {
				return err
			}
			ids[f.Interface] = id
			if j.live {
				st := capture.Statistics{Known: capture.KnownOSDropped}
				if id == 0 {
					st.OSDropped = j.dropped
				}
				w.SetStatistics(id, st)
			}
		}
		f.Interface, f.Ref = id, machine.Ref(0)
		for ; len(samples) > 0 && samples[0].At <= f.At; samples = samples[1:] {
			if err := w.WriteHost(samples[0]); err != nil {
				return err
			}
		}
		if err := w.WriteFrame(&f, j.commentsOf(i)...); err != nil {
			return err
		}
	}
	for _, s := range samples {
		if err := w.WriteHost(s); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	j.size = w.Written()
	return out.Flush()
}

// line says in one line what was recorded.
func (j *recordingJob) line() string {
	text := j.recording.First.At.Time().Format("15:04:05.000") + "  " + j.why.word
	if j.why.flow > 0 {
		text += fmt.Sprintf("  flow %d %s", j.why.flow, j.why.side)
	}
	text += ": " + j.why.message + "  → " + j.path + " (" + show.Plural(len(j.source.frames), "frame") + ")"
	if j.why.rule != nil && j.found == nil {
		text += "; the finding needs earlier packets, and does not show again in this file"
	}
	return printable.String(text)
}

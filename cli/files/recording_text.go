//go:build !js

package files

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/recorder"
	"github.com/ackscope/ackscope/show"
)

// headline says what the recording is about: "loss-burst (warn, certain): 1 burst, …".
func (j *recordingJob) headline() string {
	text := j.why.word
	if x := j.why; x.rule != nil {
		text += " (" + x.rule.Severity.String() + ", " + x.certainty.String() + ")"
	}
	return text + ": " + j.why.message
}

// mostComment bounds a comment: an option of pcapng holds 65,535 bytes.
const mostComment = 16 << 10

// comments are those of the file: where the trouble is, the overview, what both sides knew, what is missing.
func (j *recordingJob) comments() (list []string) {
	if j.shown >= 0 {
		list = append(list, recorder.Mark(uint64(j.shown+1), j.source.frames[j.shown].At, j.headline()))
	}
	list = append(list, j.overview.Sentence())
	list = append(list, j.missing()...)
	list = append(list, strings.Join(j.pages(), "\n"))
	if len(j.state) > 0 {
		list = append(list, fmt.Sprintf("what both sides knew after frame %d:\n%s", j.shown+1, strings.Join(j.state, "\n")))
	}
	for i := range list {
		list[i] = strings.ToValidUTF8(list[i][:min(len(list[i]), mostComment)], "")
	}
	return list
}

// commentsOf are those of the i-th frame.
func (j *recordingJob) commentsOf(i int) (list []string) {
	if j.heads > 0 && i == j.heads {
		list = append(list, "ackscope recorder: the packets between this frame and the one before were not recorded")
	}
	if i == j.shown {
		list = append(list, "ackscope recorder: "+j.headline())
	}
	return list
}

// missing says what the recording lacks.
func (j *recordingJob) missing() (list []string) {
	r := j.recording
	if j.why.rule != nil && j.found == nil {
		list = append(list, "the finding needs packets from before this recording, and does not show again in it")
	}
	if j.heads > 0 {
		list = append(list, fmt.Sprintf("frames 1 to %d are the first of their flows, which tell the protocol; the packets "+
			"between them and frame %d were not recorded", j.heads, j.heads+1))
	}
	if r.Evicted > 0 {
		list = append(list, fmt.Sprintf("the memory of the recorder (--memory) was too small for the time: %s or more of "+
			"all flows are missing at the beginning", show.Plural(r.Evicted, "frame")))
	}
	if r.Limited > 0 {
		list = append(list, fmt.Sprintf("%s more than -b filesize allows are missing", show.Plural(r.Limited, "frame")))
	}
	if r.Unlisted > 0 {
		list = append(list, fmt.Sprintf("%s more of flows beyond the first %s: their frames are missing",
			show.Plural(r.Unlisted, "trigger"), show.Grouped(len(r.Flows))))
	}
	if j.dropped > 0 {
		list = append(list, fmt.Sprintf("the capturing host dropped %s in this time or shortly after",
			show.Plural(j.dropped, "packet")))
	}
	return list
}

// json describes the recording for programs. docs/recorder.md lists the keys.
func (j *recordingJob) json() []byte {
	r, why := j.recording, j.why
	var o app.Object
	o.Begin()
	o.Str("recording", filepath.Base(j.path))
	o.Str("on", why.word)
	o.Time("at", r.First.At)
	o.Time("told", r.Told)
	o.Time("from", r.From)
	o.Time("to", r.To)
	if why.rule == nil {
		o.Null("severity")
		o.Null("certainty")
	} else {
		o.Str("severity", why.rule.Severity.String())
		o.Str("certainty", why.certainty.String())
	}
	o.Str("message", why.message)
	if why.flow == 0 {
		o.Null("live_flow")
		o.Null("side")
	} else {
		o.Int("live_flow", int64(why.flow))
		o.Str("side", why.side.String())
		o.Addr("a", why.addresses[0])
		o.Addr("b", why.addresses[1])
	}
	if why.rule == nil {
		o.Null("again")
	} else {
		o.Bool("again", j.found != nil)
	}
	if j.shown < 0 {
		o.Null("frame")
	} else {
		o.Int("frame", int64(j.shown+1))
	}
	o.Bool("all", r.All)
	o.Int("flows", int64(len(r.Flows)))
	o.Int("triggers", int64(r.Triggers))
	o.Int("triggers_unlisted", int64(r.Unlisted))
	o.Int("frames", int64(len(j.source.frames)))
	o.Int("first_frames", int64(j.heads))
	o.Int("bytes", int64(r.Bytes))
	o.Int("evicted", int64(r.Evicted))
	o.Int("limited", int64(r.Limited))
	if j.live {
		o.Uint("dropped", j.dropped)
	} else {
		o.Null("dropped")
	}
	o.Str("overview", j.overview.Sentence())
	o.Texts("missing", j.missing())
	o.Texts("diagnosis", j.pages())
	o.Texts("state", j.state)
	list := j.session.Flows()
	const most = 4096 // as many as a recording lists
	o.List("recorded", min(len(list), most), func(i int) {
		f := list[i]
		o.Inner(func() {
			o.Int("flow", int64(f.ID))
			o.Addr("a", f.A)
			o.Addr("b", f.B)
			o.Str("protocol", show.FlowName(f))
			var rules []string
			for _, x := range f.Findings() {
				rules = append(rules, x.Rule.ID)
			}
			o.Texts("findings", rules)
		})
	})
	return append(o.Buf, '}', '\n')
}

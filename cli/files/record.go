//go:build !js

package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/figures"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/recorder"
	"github.com/ackscope/ackscope/show"
)

// flight is a running flight recorder.
type flight struct {
	app      *app.App
	run      *reader.Running
	triggers *triggers
	recorder *recorder.Recorder
	row      *recordingRow
	asked    map[string]*asked // by rule: what the open recording is about
	now      machine.Instant   // time of the last frame
	next     machine.Instant   // when the conditions and the counts of drops are looked at again
	drops    []dropped
	oldest   time.Duration // how far drops go back
	signals  chan os.Signal
	frame    recorder.Frame
}

// dropped is how many packets the capture lacked at a time.
type dropped struct {
	at    machine.Instant
	count uint64
}

// asked is why a recording was begun.
type asked struct {
	word      string // of --on: "warn", a rule, a condition, SIGUSR1
	rule      *machine.Rule
	side      machine.Side
	certainty machine.Certainty
	flow      int // its number in this run; 0 for a signal
	addresses [2]netip.AddrPort
	message   string
}

// record captures, or reads a capture, and writes what is around troubles.
func record(a *app.App, live *reader.LiveFlags, watch *reader.WatchFlags, flags *recordFlags,
	conditions []string,
) error {
	limits, err := parseRecordLimits(conditions)
	if err != nil {
		return err
	}
	folder, err := flags.folder(live)
	if err != nil {
		return err
	}
	options, err := flags.options(a, &limits)
	if err != nil {
		return err
	}
	x := &flight{
		app: a, asked: map[string]*asked{}, signals: make(chan os.Signal, 1),
		oldest: options.Keep + options.Late + options.Longest,
	}
	if x.triggers, err = parseTriggers(a, flags.on); err != nil {
		return err
	}
	if x.triggers.signal {
		onUserSignal(x.signals)
		defer signal.Stop(x.signals)
	}
	from := live.Recording()
	switch {
	case len(live.Devices) > 0 && len(a.Flags.Read) > 0:
		return reader.ErrIAndFile
	case len(live.Devices) == 0:
		if from, err = reader.One(a, nil, "-w "+folder); err != nil {
			return err
		}
		watch.Endless()
	}
	live.Write = ""
	if x.run, err = live.Begin(a, watch, from); err != nil {
		return err
	}
	if x.row, err = newRecordingRow(a, x.run, folder, &limits); err != nil {
		return errors.Join(err, x.run.End())
	}
	options.Begin, options.Done = x.row.wait, x.done
	if x.recorder, err = recorder.New(options); err != nil {
		return errors.Join(err, x.run.End())
	}
	err = x.follow()
	return a.Ended(errors.Join(err, x.run.End()))
}

// follow reads to the end.
func (x *flight) follow() error {
	o, err := x.app.Options()
	if err != nil {
		return err
	}
	o.Sink = x.triggers.sink()
	if line := x.run.Host(); line != nil {
		line.KeepRecent()
	}
	gone := o.Gone
	o.Gone = func(f *analyze.Flow, why analyze.Reason) {
		x.triggers.forget(f)
		gone(f, why)
	}
	o.Fed = x.fed
	x.run.OnFrame, x.run.OnFound, x.run.OnTick = x.before, x.found, x.tick
	_, err = x.run.Run(o)
	if x.run.Session != nil {
		x.conditions()
	}
	x.recorder.Close()
	x.row.wait()
	return errors.Join(err, x.row.err, x.summary())
}

// before is called before a frame is analysed.
func (x *flight) before(f *capture.Frame) {
	x.now = max(x.now, f.At)
	if x.now.Sub(f.At) > x.oldest { // as the recorder does, where a wrong time went far ahead
		x.now, x.next, x.drops = f.At, f.At, nil
		x.triggers.checked = f.At
	}
	x.recorder.Tick(f.At)
	if x.now >= x.next {
		x.second()
	}
	x.signal()
}

// second does what is done once a second of the capture.
func (x *flight) second() {
	x.next = x.now.Add(time.Second)
	x.conditions()
	if x.run.Reader.Live == nil {
		return
	}
	for len(x.drops) > 1 && x.now.Sub(x.drops[1].at) > x.oldest {
		x.drops = x.drops[1:]
	}
	x.drops = append(x.drops, dropped{x.now, x.run.Dropped()})
}

// tick is called several times a second. On an idle interface no frame moves the time.
func (x *flight) tick() {
	x.signal()
	x.row.poll()
	if x.run.Reader.Live != nil && x.now > 0 {
		const behind = time.Second // frames that the kernel still holds are older than now
		if now := machine.Instant(time.Now().Add(-behind).UnixNano()); now > x.now {
			x.now = now
			x.recorder.Tick(now)
		}
	}
}

// signal records where SIGUSR1 came.
func (x *flight) signal() {
	select {
	case <-x.signals:
		x.begin(&asked{word: userSignal, message: "asked for by " + userSignal}, func() {
			x.recorder.Signal(userSignal, x.now)
		}, userSignal)
	default:
	}
}

// fed is called with each frame after its analysis.
func (x *flight) fed(f *capture.Frame, p *capture.Packet, flow *analyze.Flow) {
	x.frame = recorder.Frame{
		At: f.At, Interface: f.Ref.File()<<deviceBits | f.Interface, Link: f.LinkType, Length: f.Length,
		Data: f.Data, Options: f.Options, BigEndian: f.BigEndian,
	}
	if flow != nil {
		x.frame.Flow = conversation(flow)
	}
	x.recorder.Push(&x.frame)
}

// conversation returns the number of a flow's addresses, which all sessions on them share.
func conversation(f *analyze.Flow) uint64 {
	a, b := f.A, f.B
	if a.Compare(b) > 0 {
		a, b = b, a
	}
	h := fnv.New64a()
	var buf [37]byte
	x, y := a.Addr().As16(), b.Addr().As16()
	copy(buf[:], x[:])
	copy(buf[16:], y[:])
	binary.BigEndian.PutUint16(buf[32:], a.Port())
	binary.BigEndian.PutUint16(buf[34:], b.Port())
	buf[36] = byte(f.Transport)
	_, _ = h.Write(buf[:]) // never fails
	return max(h.Sum64(), recorder.Shared+1)
}

// found is called for each occurrence of a rule.
func (x *flight) found(f *analyze.Finding) {
	if !x.triggers.finding(f) {
		return
	}
	x.begin(&asked{
		word: f.Rule.ID, rule: f.Rule, side: f.Side, certainty: f.Certainty, flow: f.Flow.ID,
		addresses: [2]netip.AddrPort{f.Flow.A, f.Flow.B}, message: f.Message(),
	}, func() {
		x.recorder.Trigger(recorder.Trigger{At: f.Last, Rule: f.Rule.ID, Flow: conversation(f.Flow)}, x.now)
	}, f.Rule.ID)
}

// conditions looks where a condition holds that did not hold before.
func (x *flight) conditions() {
	x.triggers.check(x.run.Session, x.now, func(c *watched, f *analyze.Flow, side machine.Side, told *figures.Result) {
		x.begin(&asked{
			word: c.String(), side: side, flow: f.ID, addresses: [2]netip.AddrPort{f.A, f.B},
			message: told.Say(fmt.Sprintf(" %s of flow %d", figures.Way(side), f.ID)),
		}, func() {
			x.recorder.Trigger(recorder.Trigger{At: x.now, Rule: c.String(), Flow: conversation(f)}, x.now)
		}, c.String())
	})
}

// begin triggers, and keeps why if that begins a recording.
func (x *flight) begin(why *asked, trigger func(), rule string) {
	before := x.recorder.Counts().Recordings
	trigger() // it may first end the last recording of the rule
	if x.recorder.Counts().Recordings > before {
		x.asked[rule] = why
	}
}

// done takes a recording that has ended.
func (x *flight) done(r *recorder.Recording) {
	why := x.asked[r.First.Rule]
	delete(x.asked, r.First.Rule)
	x.row.save(r, why, x.droppedIn(r))
}

// droppedIn returns how many packets the capture lacks of a recording's time: those counted since the last look
// before it.
func (x *flight) droppedIn(r *recorder.Recording) uint64 {
	if x.run.Reader.Live == nil {
		return 0
	}
	first := uint64(0)
	for _, d := range x.drops {
		if d.at <= r.From {
			first = d.count
		}
	}
	return x.run.Dropped() - first
}

// summary says what the limits refused.
func (x *flight) summary() error {
	c := x.recorder.Counts()
	var parts []string
	add := func(n int, one, why string) {
		if n > 0 {
			parts = append(parts, show.Plural(n, one)+" "+why)
		}
	}
	add(c.Rate, "trigger", "beyond --rate")
	add(c.Every, "trigger", "within --every of the last recording of its rule")
	add(c.Open, "trigger", "while too many recordings were open")
	add(c.Oversized, "frame", "larger than the memory of the recorder")
	add(c.Jumps, "time", "the clock went far back, and the recorder began anew")
	add(x.row.removed, "recording", "removed to make room (-b)")
	if n := x.run.Reader; n.Live == nil && n.Dropped() > 0 {
		parts = append(parts, "the capture that was read lacks "+show.Plural(n.Dropped(), "packet")+
			", and its recordings cannot say which")
	}
	if len(parts) > 0 {
		x.app.Warn("recorder: " + strings.Join(parts, "; "))
	}
	if !x.app.Flags.Quiet {
		_, err := fmt.Fprintf(x.app.Err, "%s written\n", show.Plural(x.row.written, "recording"))
		return err
	}
	return nil
}

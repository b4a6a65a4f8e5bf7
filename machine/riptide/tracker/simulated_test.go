package tracker_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/machine/riptide/riptidetest"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A simulated connection is an oracle that no recorded capture can be. It knows both ends' truth
// for every message, under any conditions, for a tap at any place.

// conditions of one simulated connection.
type conditions struct {
	riptidetest.Setting
	tap   machine.Vantage
	fixed bool // the tracker is told where the tap is
	relay bool // both ends have the same address, since one of them is a relay
}

func (c *conditions) String() string {
	p := &c.Path
	transport := "udp"
	if c.Stream {
		transport = "tcp"
	}
	return fmt.Sprintf("%-9s %s loss %2.0f%% jitter %2dms dup %2.0f%% tap %-7s", c.Version, transport, p.Loss*100,
		p.Jitter.Milliseconds(), p.Duplicate*100, c.tap)
}

// sent identifies a message that carries a sequence.
type sent struct {
	from     machine.Side
	notify   bool
	sequence int64
}

// fate is what really became of a message.
type fate struct {
	at, ackedAt machine.Instant
	attempts    int
	acked       bool
	takenAt     []machine.Instant
}

// observed is a simulated connection and what a tracker reported about it.
type observed struct {
	c        *conditions
	truth    map[sent]*fate
	loose    [2][]machine.Instant // when unreliable messages were delivered, by receiver
	seen     []machine.Datagram
	lastOwn  [2]machine.Instant
	messages []machine.Message
	learned  machine.Facts
}

var sides = map[bool]machine.Side{false: machine.A, true: machine.B} // by: is the server

func (c *conditions) run(t *testing.T, seed uint64) *observed {
	t.Helper()
	l := riptidetest.New(t, seed, &c.Setting)
	o := &observed{c: c, truth: map[sent]*fate{}}
	l.World.Watch(func(s *sim.Step) { o.watch(s, s.Host == l.Server) })
	place := map[machine.Vantage]float64{machine.VantageA: 0, machine.VantageBetween: 0.5, machine.VantageB: 1}[c.tap]
	see := o.see
	if c.Stream {
		v, _ := riptide.LookupVersion(c.Version)
		see = o.gather(v.Build.Dialect.Prefixes[0])
	}
	l.Links[0].Tap(place, func(s sim.Tapped) { see(s.At, sides[s.From == l.Server], s.Kind, s.Offset, s.Bytes) })
	l.Run(t, c.Duration+time.Second)
	o.track(t)
	return o
}

// watch records the truth.
func (o *observed) watch(s *sim.Step, server bool) {
	x := sides[server]
	for _, e := range s.Out.Events {
		if e.Channel == riptide.ChannelUnreliable || e.Kind >= machine.EventProtocol ||
			o.bare(e.Channel == riptide.ChannelNotify) {
			continue
		}
		key := sent{x, e.Channel == riptide.ChannelNotify, e.Sequence64}
		if e.Kind == machine.EventReceived || e.Kind == machine.EventDuplicate {
			key.from = x.Other()
		}
		f := o.truth[key]
		if f == nil {
			f = &fate{at: s.At}
			o.truth[key] = f
		}
		switch e.Kind {
		case machine.EventSent, machine.EventResent:
			f.attempts++
		case machine.EventReceived:
			f.takenAt = append(f.takenAt, s.At)
		case machine.EventAcked:
			f.acked, f.ackedAt = true, s.At
		}
	}
	for _, d := range s.Out.Deliver {
		if d.Channel == riptide.ChannelUnreliable || o.bare(d.Channel == riptide.ChannelNotify) {
			o.loose[x] = append(o.loose[x], s.At)
		}
	}
}

func (o *observed) behaviour() *riptide.Behaviour {
	v, _ := riptide.LookupVersion(o.c.Version)
	return v.Behaviour
}

// bare reports whether a message has no identity although it is a notify message, as in the notes.
func (o *observed) bare(notify bool) bool { return notify && o.c.Version == "notes" }

// see records a datagram that passes the tap.
func (o *observed) see(at machine.Instant, from machine.Side, _ machine.TransmitKind, _ uint64, b []byte) {
	o.lastOwn[from] = at
	o.seen = append(o.seen, machine.Datagram{
		At: at, Ref: machine.MakeRef(0, uint64(len(o.seen)+1)), From: from, Bytes: b,
		Length: len(b),
	})
}

// gather joins the segments of a stream and cuts it into messages. A message's time is that of its
// last byte, or of an earlier byte that came later. A resent segment can be cut at another place.
func (o *observed) gather(prefix int) func(machine.Instant, machine.Side, machine.TransmitKind, uint64, []byte) {
	var pieces [2]map[uint64][]byte
	var whole [2][]byte
	var next [2]uint64
	for i := range pieces {
		pieces[i] = map[uint64][]byte{}
	}
	// take removes what follows from the pieces. It reports whether there was any.
	take := func(from machine.Side) bool {
		for offset, p := range pieces[from] {
			end := offset + uint64(len(p))
			switch {
			case end <= next[from]:
				delete(pieces[from], offset)
			case offset <= next[from]:
				whole[from] = append(whole[from], p[next[from]-offset:]...)
				next[from] = end
				return true
			}
		}
		return false
	}
	return func(at machine.Instant, from machine.Side, kind machine.TransmitKind, offset uint64, b []byte) {
		if kind != machine.SendBytes {
			return
		}
		if len(b) > len(pieces[from][offset]) {
			pieces[from][offset] = b
		}
		for take(from) {
		}
		for {
			w := whole[from]
			if len(w) < prefix {
				return
			}
			n := int(binary.LittleEndian.Uint16(w))
			if prefix == 4 {
				n = int(binary.LittleEndian.Uint32(w))
			}
			if len(w) < prefix+n {
				return
			}
			o.see(at, from, kind, offset, w[prefix:prefix+n])
			whole[from] = w[prefix+n:]
		}
	}
}

// track runs a tracker over the connection twice, as the commands do. The second run begins with
// what the first has learned.
func (o *observed) track(t *testing.T) {
	t.Helper()
	v, _ := riptide.LookupVersion(o.c.Version)
	speaker := riptide.Speaker{
		Codec:  wire.Codec{Dialect: v.Build.Dialect},
		Builds: wire.Matching(func(b *wire.Build) bool { return b == v.Build }),
	}
	facts := machine.Facts{}
	if o.c.fixed {
		facts.Vantage, facts.VantageReason = o.c.tap, "told"
	}
	for range 2 {
		tr := tracker.New(riptide.Config{
			Senders: [2]riptide.Speaker{speaker, speaker}, Stream: o.c.Stream,
			OneHost: o.c.relay,
		}, facts)
		o.messages = o.messages[:0]
		var out machine.Effects
		take := func() {
			o.messages = append(o.messages, out.Messages...)
			out.Reset()
		}
		for i := range o.seen {
			d := o.seen[i]
			tr.Observe(&d, &out)
			take()
		}
		tr.Finish(&out)
		take()
		facts = tr.Learned()
	}
	o.learned = facts
}

// figures are numbers of messages of a side, in truth and as the tracker has them.
type figures struct {
	sent, taken, acked                   int // in truth
	yes, no, likely, unknown, ackedTold  int
	looseTaken, looseCertain, looseTolds int
}

func (f *figures) String() string {
	return fmt.Sprintf("sent %4d taken %4d: certain %4d, %3d not, likely %4d, unknown %4d | acked %4d: %4d | unreliable "+
		"taken %4d: %4d of them certain %4d",
		f.sent, f.taken, f.yes, f.no, f.likely, f.unknown, f.acked, f.ackedTold, f.looseTaken, f.looseTolds, f.looseCertain)
}

// hold compares the tracker's messages with the truth. What is certain must be true, and nothing at
// the tap may be missing. It returns the figures by sender.
func (o *observed) hold(t *testing.T, name string, vantage machine.Vantage) (figure [2]figures) {
	t.Helper()
	problems := 0
	fail := func(format string, args ...any) {
		if problems++; problems <= 6 {
			t.Errorf("%s: "+format, append([]any{name}, args...)...)
		}
	}
	told := map[sent]bool{}
	for i := range o.messages {
		m := &o.messages[i]
		f := &figure[m.From]
		if m.Mode == machine.ModeUnreliable || o.bare(m.Mode == machine.ModeNotify) {
			if m.Delivered == machine.Yes {
				f.looseTolds++
				if m.Certainty == machine.Certain {
					f.looseCertain++
				}
			}
			continue
		}
		key := sent{m.From, m.Mode == machine.ModeNotify, m.Sequence64}
		true, ok := o.truth[key]
		if !ok || true.attempts == 0 {
			fail("%v was never sent", key)
			continue
		}
		told[key] = ok
		o.holdMessage(fail, key, m, true, vantage)
		switch {
		case m.Certainty == machine.Certain && m.Delivered == machine.Yes:
			f.yes++
		case m.Certainty == machine.Certain && m.Delivered == machine.No:
			f.no++
		case m.Delivered == machine.Unanswered:
			f.unknown++
		default:
			f.likely++
		}
		if m.Acked == machine.Yes {
			f.ackedTold++
		}
	}
	for key, true := range o.truth {
		f := &figure[key.from]
		if true.attempts == 0 {
			fail("%v came, and was never sent", key)
		}
		f.sent++
		if len(true.takenAt) > 0 {
			f.taken++
		}
		if true.acked {
			f.acked++
		}
		// A stream drops what its window still holds when it is closed.
		if !told[key] && vantage.Near(key.from) && !o.c.Stream {
			fail("%v passed the tap and is not reported", key)
		}
	}
	for x := range figure {
		f := &figure[x]
		f.looseTaken = len(o.loose[1-x])
		sure := 0 // while it still spoke
		for _, at := range o.loose[1-x] {
			if at < o.lastOwn[1-x].Add(-lastTick) {
				sure++
			}
		}
		if vantage.Near(machine.Side(1-x)) && f.looseTolds < sure {
			fail("%d unreliable messages were delivered at the tap, %d are reported", sure, f.looseTolds)
		}
		if f.looseCertain > f.looseTaken {
			fail("%d unreliable messages of %v are certain to have been handed over, and %d were", f.looseCertain,
				machine.Side(x), f.looseTaken)
		}
	}
	return figure
}

// lastTick bounds the time from a side's last read to its last message. The side may not have read
// what came later.
const lastTick = 60 * time.Millisecond

func (o *observed) holdMessage(fail func(string, ...any), key sent, m *machine.Message, true *fate,
	vantage machine.Vantage,
) {
	near, at := vantage.Near(key.from), vantage.Near(key.from.Other())
	certain := m.Certainty == machine.Certain
	switch {
	case near && m.Attempts != true.attempts && !(o.c.Stream && m.Attempts < true.attempts):
		fail("%v was sent %d times, %d are reported", key, true.attempts, m.Attempts)
	case !near && !o.c.Stream && o.c.Path.Duplicate == 0 && m.Attempts > true.attempts:
		fail("%v was sent %d times, %d are reported", key, true.attempts, m.Attempts)
	}
	switch taken := len(true.takenAt) > 0; {
	case certain && m.Delivered == machine.Yes && !taken:
		fail("%v is certain to have been handed over (frame %d), and was not", key, m.DeliveredBy.Frame())
	case certain && m.Delivered == machine.No && taken:
		fail("%v is certain not to have been handed over, and was at %v", key, true.takenAt[0])
	case at && key.notify && !certain && o.c.Version == "main":
		// After a jump, nothing distinguishes it from releases with the shift fault.
	case at && taken && m.Delivered != machine.Yes && true.takenAt[0] < o.lastOwn[key.from.Other()].Add(-lastTick):
		fail("%v was delivered at the tap at %v, and is reported as %v (%v)", key, true.takenAt[0], m.Delivered, m.Certainty)
	case at && !o.c.Stream && !taken && m.Delivered == machine.Yes &&
		m.DeliveredAt < o.lastOwn[key.from.Other()].Add(-lastTick):
		fail("%v was not delivered at the tap, and is reported as such (frame %d, %v)", key, m.DeliveredBy.Frame(),
			m.Certainty)
	case at && certain && taken && m.Deliveries != len(true.takenAt):
		fail("%v was delivered %d times at the tap, %d are reported", key, len(true.takenAt), m.Deliveries)
	case certain && taken && m.Delivered == machine.Yes && m.DeliveredAt > true.takenAt[0] && at:
		fail("%v was delivered at %v, before the frame that is to have brought it (%v)", key, true.takenAt[0],
			m.DeliveredAt)
	}
	switch {
	case m.Acked == machine.Unanswered:
	case true.attempts >= 15 && !o.behaviour().DropsConnection:
		// The message was dropped at a tick that the wire does not show. The Ack may have come within
		// some milliseconds of that tick.
	case m.Acked == machine.Yes && !true.acked && certain:
		fail("%v is reported as acked by frame %d, and was not", key, m.AckedBy.Frame())
	case near && m.Acked == machine.No && true.acked && true.ackedAt < o.lastOwn[key.from].Add(-lastTick):
		fail("%v was acked at %v, and is reported as not", key, true.ackedAt)
	}
}

var (
	gridVersions = []string{"notes", "2.0", "2.1-dev-d", "2.1-dev-n", "2.1.0", "2.2.1", "main"}
	gridTaps     = []machine.Vantage{machine.VantageA, machine.VantageB, machine.VantageBetween}
)

// grid returns the conditions of the matrix. Over TCP nothing is duplicated.
func grid(short bool) (all []conditions) {
	for _, version := range gridVersions {
		if short && version != "2.0" && version != "2.2.1" {
			continue
		}
		for _, stream := range []bool{false, true} {
			for _, loss := range []float64{0, 0.02, 0.2} {
				for _, jitter := range []time.Duration{0, 15 * time.Millisecond, 60 * time.Millisecond} {
					for _, dup := range []float64{0, 0.1} {
						if stream && (dup > 0 || loss > 0.1) || short && jitter > 30*time.Millisecond {
							continue
						}
						for _, tap := range gridTaps {
							all = append(all, conditions{
								Setting: riptidetest.Setting{
									Version: version, Stream: stream, Ask: true, Duration: 6 * time.Second, Rate: 0.15, Leave: true,
									Limits: endpoint.Limits{Off: true},
									Path:   sim.Path{Delay: 25 * time.Millisecond, Jitter: jitter, Loss: loss, Duplicate: dup},
								},
								tap: tap, fixed: true,
							})
						}
					}
				}
			}
		}
	}
	return all
}

// TestSimulated compares the tracker with the truth over the grid, and its figures with the golden
// matrix. The figures must not get worse.
func TestSimulated(t *testing.T) {
	var lines []string
	for i, c := range grid(testing.Short()) {
		o := c.run(t, uint64(i)+1)
		figure := o.hold(t, c.String(), c.tap)
		for x := range figure {
			lines = append(lines, fmt.Sprintf("%s from %s: %s", c.String(), machine.Side(x), &figure[x]))
		}
	}
	if testing.Short() || t.Failed() {
		return
	}
	sort.Strings(lines)
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", "simulated.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the figures are not those of %s; run with -update and look at what has changed\n%s", path,
			firstDifference(string(want), got))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range g {
		if i >= len(w) || w[i] != g[i] {
			return "- " + strings.Join(w[min(i, len(w)):min(i+1, len(w))], "") + "\n+ " + g[i]
		}
	}
	return fmt.Sprintf("%d lines, expected %d", len(g), len(w))
}

package truth

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/internal/riptidelog"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// readRipRun reads the log of a run in testdata/pcaps.
func readRipRun(t *testing.T, name string) *riptidelog.Run {
	t.Helper()
	return parseRipRun(t, name, unzip(t, testenv.Capture(t, name+".truth.jsonl.gz")))
}

// parseRipRun reads the log of a run.
func parseRipRun(t *testing.T, name string, text []byte) *riptidelog.Run {
	t.Helper()
	r, err := riptidelog.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// ripCapture is a capture and the result of its analysis.
type ripCapture struct {
	name, tap   string
	first, last float64
	run         *riptidelog.Run
	survey      *analyze.Survey // of the first run
	session     *analyze.Session
	events      map[int][]machine.Event // events by flow number
	messages    map[int][]machine.Message
	anomalies   map[int][]machine.Anomaly
}

var ripName = regexp.MustCompile(`^([ut]\w+)\.(client|server)\.pcap(ng)?\.gz$`)

// ripCaptures analyzes every Riptide capture whose name begins with one of the
// prefixes, and calls check for each.
func ripCaptures(t *testing.T, prefixes []string, check func(*testing.T, *ripCapture)) {
	t.Helper()
	testenv.Long(t, "an analysis of each of the Riptide captures")
	folder := filepath.Dir(testenv.Capture(t, "riptide-messages.yaml"))
	tried := 0
	for _, prefix := range prefixes {
		paths, err := filepath.Glob(filepath.Join(folder, prefix+"*.pcap*.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			named := ripName.FindStringSubmatch(filepath.Base(path))
			if named == nil {
				continue
			}
			tried++
			t.Run(named[1]+"."+named[2], func(t *testing.T) {
				if analyzed[path] == nil {
					analyzed[path] = analyzeRiptide(t, path, named[1], named[2])
				}
				check(t, analyzed[path])
			})
		}
	}
	if tried == 0 {
		t.Fatalf("no captures of %v", prefixes)
	}
}

// analyzed caches the captures of this file's tests, which analyze each once.
var analyzed = map[string]*ripCapture{}

func analyzeRiptide(t *testing.T, path, name, tap string) *ripCapture {
	t.Helper()
	c := &ripCapture{name: name, tap: tap, run: readRipRun(t, name)}
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := c.analyze(in, dissect.NewRegistry(riptide.Protocol)); err != nil {
		t.Fatal(err)
	}
	return c
}

// analyze fills in all that the analysis says of a capture. One that is cut short is
// analyzed up to there.
func (c *ripCapture) analyze(in *capture.Input, registry *dissect.Registry) (err error) {
	c.events, c.messages = map[int][]machine.Event{}, map[int][]machine.Message{}
	c.anomalies = map[int][]machine.Anomaly{}
	sink := func(r *analyze.Record) {
		if r.Flow == nil {
			return
		}
		c.events[r.Flow.ID] = append(c.events[r.Flow.ID], r.Events...)
		c.anomalies[r.Flow.ID] = append(c.anomalies[r.Flow.ID], r.Anomalies...)
		for _, m := range r.Messages {
			m.Body, m.Data = nil, nil
			c.messages[r.Flow.ID] = append(c.messages[r.Flow.ID], m)
		}
	}
	o := analyze.Options{Registry: registry}
	learned, err := analyze.Learn(in, o)
	if err != nil {
		return err
	}
	c.survey = learned.Survey()
	o.Survey, o.Sink = c.survey, sink
	var cut *capture.CutError
	if c.session, err = analyze.Run(in, o); err != nil && !errors.As(err, &cut) {
		return err
	}
	first, last := c.session.Span()
	c.first, c.last = float64(first)/1e9, float64(last)/1e9
	return nil
}

// connection is one flow of a capture with the log lines of both its ends.
type connection struct {
	flow   *analyze.Flow
	client string
	remote string
	sides  [2]string // the endpoint of each side
	lines  [2][]riptidelog.Line
}

func (c *ripCapture) connections(t *testing.T) (out []connection) {
	t.Helper()
	for _, f := range c.session.Flows() {
		if f.Protocol == nil {
			continue
		}
		client, remote := c.run.Client(c.tap, f.A, f.B)
		if client == "" {
			t.Errorf("flow between %v and %v: no client of the run", f.A, f.B)
			continue
		}
		x := connection{flow: f, client: client, remote: remote, sides: [2]string{client, "server"}}
		if f.A.Port() == c.run.Server {
			x.sides = [2]string{"server", client}
		}
		for i, endpoint := range x.sides {
			x.lines[i] = c.run.Of(endpoint, remote)
		}
		out = append(out, x)
	}
	return out
}

// near reports whether a side of the connection is at the tap.
func (c *ripCapture) near(x *connection, s machine.Side) bool {
	return c.tap == "server" && x.sides[s] == "server" || c.tap == "client" && x.sides[s] != "server"
}

// joined reports whether the capture begins in the middle of the run.
func (c *ripCapture) joined() bool {
	return slices.ContainsFunc(c.run.Lines,
		func(l riptidelog.Line) bool { return l.T < c.first && (l.Event == "send" || l.Event == "receive") })
}

// connectionEvents are the connection events that the logs contain.
var connectionEvents = []string{
	"connected", "connection_failed", "disconnected",
	"client_connected", "client_disconnected",
}

// TestRiptideConnections: the connections made, refused, failed and ended are found,
// with the library's reasons, and so are announced clients. No others are
// found.
func TestRiptideConnections(t *testing.T) {
	ripCaptures(t, []string{"u2", "t2", "upy", "tpy"}, func(t *testing.T, c *ripCapture) {
		for _, x := range c.connections(t) {
			for _, s := range []machine.Side{machine.A, machine.B} {
				if !c.near(&x, s) {
					continue
				}
				want, got := c.life(&x, s, machine.Likely)
				if !slices.Equal(want, got) {
					t.Errorf("%s: found %v, its log has %v", x.sides[s], got, want)
				}
			}
		}
	})
}

// life lists what the log of a side says of its connection. It also lists what ackscope finds
// at a least certainty, in the same words. Both lists are sorted.
func (c *ripCapture) life(x *connection, s machine.Side, least machine.Certainty) (want, got []string) {
	for i := range x.lines[s] {
		l := &x.lines[s][i]
		// Ends are logged up to 6 s after the last datagram.
		if l.T < c.first || l.T > c.last+6.5 || l.T > c.last && l.Event != "disconnected" &&
			l.Event != "connection_failed" {
			continue
		}
		if word, ok := c.connectionEvent(l); ok {
			want = append(want, word)
		}
	}
	for _, e := range c.events[x.flow.ID] {
		if name := x.flow.Protocol.EventNames[e.Kind]; e.Side == s && slices.Contains(connectionEvents, name) &&
			e.Certainty >= least {
			got = append(got, fmt.Sprintf("%s %d", name, e.Sequence))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	return c.unlogged(want, got)
}

// connectionEvent returns an event of the log in the words that the test compares. It
// returns false for other events.
func (c *ripCapture) connectionEvent(l *riptidelog.Line) (string, bool) {
	number := 0
	switch l.Event {
	case "connected":
		number = l.ClientID
	case "disconnected":
		number = l.Code
	case "client_connected", "client_disconnected":
		if l.Endpoint == "server" {
			return "", false
		}
		number = l.ID
	case "connection_failed":
		if l.Endpoint == "server" {
			return "", false
		}
		// Reasons have numbers since 2.1. Release 2.0 does not log them, and Pytide
		// logs those on the wire.
		number = slices.Index([]string{"NoConnection", "AlreadyConnected", "ServerFull", "Rejected", "Custom"}, l.Reason)
		if l.OnWire != nil && *l.OnWire >= 0 && l.Reason != "NoConnection" {
			number = *l.OnWire
		}
	default:
		return "", false
	}
	return fmt.Sprintf("%s %d", l.Event, number), true
}

// unlogged removes what either list cannot contain.
func (c *ripCapture) unlogged(want, got []string) (w, g []string) {
	if slices.Contains(want, "connection_failed -1") {
		// 2.0.0 does not log its reasons: compare only that it failed.
		for i := range got {
			if strings.HasPrefix(got[i], "connection_failed ") {
				got[i] = "connection_failed -1"
			}
		}
	}
	// tcpdump was stopped before the server, so the file lacks its goodbye.
	for _, stop := range []string{"disconnected 5", "disconnected 80"} {
		if i := slices.Index(want, stop); i >= 0 && !slices.Contains(got, stop) &&
			(c.name == "u200_lobby" || c.name == "u210_three_noquality") {
			want = slices.Delete(want, i, i+1)
		}
	}
	if c.name == "upy_three" && c.tap == "server" {
		// The server acked client 2's Welcome and lost it: relaying had damaged its
		// messages.
		if i := slices.Index(got, "connected 2"); i >= 0 && !slices.Contains(want, "connected 2") {
			got = slices.Delete(got, i, i+1)
		}
	}
	return want, got
}

// TestRiptideRTT: the smoothed RTT at the end is that of the library. A
// client's newest sample is not on the wire yet. It is known up to a tick of
// the client's clock, which is 10 ms here, and 3 tenths of it count.
func TestRiptideRTT(t *testing.T) {
	compared := 0
	ripCaptures(t, []string{"u2", "t2", "upy", "tpy"}, func(t *testing.T, c *ripCapture) {
		if c.joined() {
			return // what was smoothed before is not in the capture
		}
		for _, x := range c.connections(t) {
			for _, s := range []machine.Side{machine.A, machine.B} {
				if !c.near(&x, s) {
					continue
				}
				want, found := riptidelog.Line{Smooth: -1}, false
				for _, l := range x.lines[s] {
					if l.Event == "stats" && l.T <= c.last+6.5 {
						want, found = l, true
					}
				}
				sum, ok := x.flow.Summary(s)
				if !found || !ok || want.T > c.last+0.1 && want.Event == "" {
					continue
				}
				got := int(sum.RTT.Milliseconds())
				if sum.RTT < 0 {
					got = -1
				}
				tolerance := 1
				if x.sides[s] != "server" {
					tolerance = 4
				}
				if first := want.Smooth == want.RTT; first {
					tolerance = 11 // one sample only, which is not smoothed
				}
				if c.tap == "server" && strings.HasPrefix(c.name, "upy") {
					tolerance = 3 // a Pytide server stops without a message: the heartbeats that it read last are unknown
				}
				if c.name == "t21d_clean" {
					tolerance = 6 // TCP delays its pings (Nagle)
				}
				compared++
				if want.Smooth <= 0 && c.name == "u210_lobby" {
					continue // dropped before it had reported anything that it read
				}
				if d := got - want.Smooth; d > tolerance || -d > tolerance {
					t.Errorf("%s: smoothed RTT %d ms, its library had %d (last sample %d)", x.sides[s], got, want.Smooth, want.RTT)
				}
			}
		}
	})
	if !testing.Short() && compared < 100 {
		t.Errorf("%d ends compared: too few", compared)
	}
}

// undelivered returns the messages that one end counted as acked, and that the
// other end's application never got.
func undelivered(x *connection, receiver machine.Side, first float64) (never []int) {
	sent, acked, had := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, l := range x.lines[receiver.Other()] {
		switch {
		case l.Mode != "reliable":
		// Relayed messages (id 31) are logged at neither end of the relay.
		case l.Event == "send" && l.T >= first && *l.MessageID != 31:
			sent[l.Seq] = true
		case l.Event == "acked":
			acked[l.Seq] = true
		}
	}
	for _, l := range x.lines[receiver] {
		if l.Event == "receive" && l.Mode == "reliable" {
			had[l.Seq] = true
		}
	}
	for seq := range sent {
		if acked[seq] && !had[seq] {
			never = append(never, seq)
		}
	}
	slices.Sort(never)
	return never
}

// TestRiptideAckedNotDelivered: at the receiver's end, all messages that were
// acked and never delivered are found, and no others. At the sender's end, none
// of them is certainly delivered.
func TestRiptideAckedNotDelivered(t *testing.T) {
	total := 0
	ripCaptures(t, []string{"u2", "t2"}, func(t *testing.T, c *ripCapture) {
		if len(c.run.Partial) > 0 {
			return
		}
		merged := c.name == "u210_lobby" || c.name == "u210_three_noquality"
		for _, x := range c.connections(t) {
			for _, s := range []machine.Side{machine.A, machine.B} {
				want := undelivered(&x, s, c.first)
				if merged && x.sides[s] != "server" {
					continue // 2.1.0 ORs the ids of what its server sends to several clients: an id is ambiguous
				}
				var got []int
				for _, e := range c.events[x.flow.ID] {
					if e.Side == s && x.flow.Protocol.EventNames[e.Kind] == "acked_not_delivered" {
						got = append(got, int(e.Sequence))
						if !c.near(&x, s) && e.Certainty > machine.Likely {
							t.Errorf("%s, away from the tap: %d graded %v", x.sides[s], e.Sequence, e.Certainty)
						}
					}
				}
				slices.Sort(got)
				for _, seq := range got {
					if !slices.Contains(want, seq) {
						t.Errorf("%s: %d is said to be acked and not delivered, by the logs it is not", x.sides[s], seq)
					}
				}
				if c.near(&x, s) {
					total += len(want)
					missing := slices.DeleteFunc(slices.Clone(want), func(seq int) bool { return slices.Contains(got, seq) })
					// Refused while the connection ended: a copy that was on its way
					// passes after the last ack. So nothing shows whether its sender has
					// read that ack.
					if n := len(missing); n > 0 && (n > 1 || !strings.Contains(c.name, "gap")) {
						t.Errorf("%s: not found %v of %d", x.sides[s], missing, len(want))
					}
				}
				for _, m := range c.messages[x.flow.ID] {
					if m.From != s && m.Mode == machine.ModeReliable && m.Delivered == machine.Yes && m.Certainty == machine.Certain &&
						slices.Contains(want, int(m.Sequence)) {
						t.Errorf("%s: %d is said to be handed over for certain", x.sides[s], m.Sequence)
					}
				}
			}
		}
	})
	if !testing.Short() && total < 400 {
		t.Errorf("the logs have %d such messages: too few for a result", total)
	}
}

// dropped returns the reliable messages and Acks of one direction that the
// relay dropped, by the sequence that they carry or answer.
func (c *ripCapture) dropped(t *testing.T, x *connection, dir string) (messages, acks map[int]int) {
	t.Helper()
	messages, acks = map[int]int{}, map[int]int{}
	from := machine.A
	if (x.sides[machine.A] == "server") != (dir == "s2c") {
		from = machine.B
	}
	codec := x.flow.Config().Profile.(*riptide.Settings).Senders[from].Codec
	for i := range c.run.Lines {
		l := &c.run.Lines[i]
		if l.Event != "drop" || l.Dir != dir {
			continue
		}
		head, err := hex.DecodeString(l.Head)
		if err != nil {
			t.Fatal(err)
		}
		var m wire.Message
		if !codec.Fits(head, l.Length, &m) {
			continue
		}
		switch {
		case m.Type.Reliable():
			messages[int(m.Sequence)]++
		case m.Type == wire.Ack || m.Type == wire.AckExtra:
			acks[int(m.Cause)]++
		}
	}
	return messages, acks
}

// TestRiptideResends compares why the end at the tap resent messages with the
// log of the relay's drops.
func TestRiptideResends(t *testing.T) {
	right, wrong := map[string]int{}, map[string]int{}
	ripCaptures(t, []string{
		"u210_loss", "u221_loss", "u200_loss", "u21n_loss", "u21d_loss", "u210_burst", "u21n_burst",
		"u210_clean", "u221_clean",
	}, func(t *testing.T, c *ripCapture) {
		for _, x := range c.connections(t) {
			for _, s := range []machine.Side{machine.A, machine.B} {
				if !c.near(&x, s) {
					continue
				}
				there, back := "c2s", "s2c"
				if x.sides[s] == "server" {
					there, back = back, there
				}
				messages, _ := c.dropped(t, &x, there)
				_, acks := c.dropped(t, &x, back)
				for _, a := range c.anomalies[x.flow.ID] {
					cause, is := strings.CutPrefix(a.Rule.ID, "riptide-resent-")
					if !is || a.Side != s {
						continue
					}
					lost, unanswered := messages[int(a.Figures[1])] > 0, acks[int(a.Figures[1])] > 0
					ok := !lost && !unanswered
					switch cause {
					case "message-lost":
						ok = lost
					case "ack-lost":
						ok = unanswered
					case "loss":
						ok = lost || unanswered
					}
					if ok {
						right[cause]++
					} else {
						wrong[cause]++
					}
				}
			}
		}
	})
	if testing.Short() {
		return
	}
	for _, cause := range []string{"message-lost", "ack-lost", "loss", "late-ack", "timer-below-rtt"} {
		t.Logf("%s: %d right, %d wrong", cause, right[cause], wrong[cause])
		if right[cause] < 20 || wrong[cause]*20 > right[cause] {
			t.Errorf("%s: %d right, %d wrong", cause, right[cause], wrong[cause])
		}
	}
}

// TestRiptidePort checks captures with the Python port, some of which
// truthcheck.py cannot read. All messages that an end at the tap sent are
// found. Its application got each message as often as ackscope says.
func TestRiptidePort(t *testing.T) {
	ripCaptures(t, []string{"upy", "tpy"}, func(t *testing.T, c *ripCapture) {
		for _, x := range c.connections(t) {
			for _, s := range []machine.Side{machine.A, machine.B} {
				if c.near(&x, s) {
					c.portSent(t, &x, s)
					c.portHanded(t, &x, s)
				}
			}
			if text := x.flow.Verdict.Reason; !strings.Contains(text, "pytide") {
				t.Errorf("no side is recognised as Pytide: %s", text)
			}
		}
	})
}

// ripKey is the key by which messages of the logs and of the analysis are
// compared.
type ripKey struct {
	mode    string
	id, seq int
}

func logKey(l *riptidelog.Line) ripKey {
	k := ripKey{l.Mode, -1, l.Seq}
	if l.MessageID != nil {
		k.id = *l.MessageID
	}
	return k
}

func messageKey(m *machine.Message) ripKey {
	k := ripKey{m.Mode.String(), -1, int(m.Sequence)}
	if m.Mode != machine.ModeNotify {
		k.id = int(m.ID)
	}
	return k
}

// tally counts a message: the certain occurrences, and all.
type tally struct{ least, most int }

// compareCounts reports how two counts of messages differ, except for relayed
// ids.
func compareCounts(t *testing.T, what string, want map[ripKey]int, got map[ripKey]tally) {
	t.Helper()
	for k := range got {
		want[k] += 0
	}
	for k, n := range want {
		if (n < got[k].least || n > got[k].most) && k.id != 31 {
			t.Errorf("%s %s id %d seq %d: %d times (%d of them for certain), by its log %d", what, k.mode, k.id, k.seq,
				got[k].most, got[k].least, n)
		}
	}
}

// unclear reports whether the log does not say to which client an endpoint sent
// a message, or what never left.
func (c *ripCapture) unclear(endpoint string) bool {
	switch c.name {
	case "upy_three": // the server never considered client 2 connected
		return endpoint == "server"
	case "upy_half_open", "upy200_cs200_server": // neither; calls that sent nothing
		return true
	}
	return false
}

func (c *ripCapture) portSent(t *testing.T, x *connection, s machine.Side) {
	t.Helper()
	if c.unclear(x.sides[s]) {
		return
	}
	want, got := map[ripKey]int{}, map[ripKey]tally{}
	var last *riptidelog.Line
	for i := range x.lines[s] {
		l := &x.lines[s][i]
		switch {
		case l.Event == "send" && l.T >= c.first && l.T <= c.last:
			want[logKey(l)]++
			last = l
		case l.Event == "disconnected" && last != nil && l.T-last.T < 0.005 && last.Mode == "reliable":
			want[logKey(last)]-- // the call that ended the connection
		}
	}
	for i := range c.messages[x.flow.ID] {
		if m := &c.messages[x.flow.ID][i]; m.From == s && m.Mode != machine.ModeInternal {
			n := got[messageKey(m)]
			got[messageKey(m)] = tally{n.least + 1, n.most + 1}
		}
	}
	compareCounts(t, x.sides[s]+" sent", want, got)
}

func (c *ripCapture) portHanded(t *testing.T, x *connection, s machine.Side) {
	t.Helper()
	if c.unclear(x.sides[s]) {
		return
	}
	want, got := map[ripKey]int{}, map[ripKey]tally{}
	for i := range x.lines[s] {
		if l := &x.lines[s][i]; l.Event == "receive" && l.T >= c.first {
			want[logKey(l)]++
		}
	}
	for i := range c.messages[x.flow.ID] {
		m := &c.messages[x.flow.ID][i]
		if m.From == s || m.Mode == machine.ModeInternal || m.Delivered != machine.Yes {
			continue
		}
		n := got[messageKey(m)]
		n.most += m.Deliveries
		if m.Certainty == machine.Certain {
			n.least += m.Deliveries
		}
		got[messageKey(m)] = n
	}
	compareCounts(t, x.sides[s]+" was handed", want, got)
}

// thinned is a capture without every n-th frame; 0 removes none.
type thinned struct {
	*capture.Input
	every, count int
}

func (t *thinned) Next(f *capture.Frame) error {
	for {
		if err := t.Input.Next(f); err != nil {
			return err
		}
		if t.count++; t.every == 0 || t.count%t.every != 0 {
			return nil
		}
	}
}

// TestFramingLost: ackscope reports missing segments of a TCP stream. It
// reports none for a whole stream, or one that begins in the middle.
func TestFramingLost(t *testing.T) {
	for _, c := range []struct {
		name  string
		every int
		lost  bool
	}{
		{"t210_rechunk.client.pcap.gz", 0, false},
		{"t210_midstream.client.pcap.gz", 0, false},
		{"t210_rechunk.client.pcap.gz", 25, true},
	} {
		in, err := capture.Open([]string{testenv.Capture(t, c.name)}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		s, err := analyze.Run(&thinned{Input: in, every: c.every},
			analyze.Options{Registry: dissect.NewRegistry(riptide.Protocol)})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range s.Flows() {
			for _, x := range f.Findings() {
				found = found || x.Rule.ID == "stream-framing-lost"
			}
		}
		if found != c.lost {
			t.Errorf("%s without every %d. frame: found %v", c.name, c.every, found)
		}
	}
}

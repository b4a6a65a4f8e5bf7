package arrivals

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/internal/riptidelog"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// The library of a receiver sends the Ack of a message when it reads the message. It calls the
// application later in the same update, or in the next one (Pytide). The log is written in that
// call. Once in a while the runtime stops or compiles between the two.
const (
	handover     = 12 * time.Millisecond // the usual wait for that call: at most an update of 10 ms
	handoverRare = 45 * time.Millisecond // for one message in 50
)

// gameFrame is the time between two updates of the program in these runs.
const gameFrame = 10 * time.Millisecond

// library is a captured library, or one state of it.
type library struct {
	name     string
	prefixes []string
	acksNone bool // it acks nothing but its Welcome, so nothing proves what arrived
	backward bool // it reads its socket backwards, so an Ack proves nothing about other messages
}

// libraries are the captured libraries, by how the names of their runs begin.
var libraries = []library{
	{name: "Riptide 2.0.0", prefixes: []string{"u200_"}},
	{name: "Riptide before 2.1.0", prefixes: []string{"u21d_", "u21n_"}},
	{name: "Riptide 2.1.0", prefixes: []string{"u210_"}},
	{name: "Riptide 2.1.2", prefixes: []string{"u212_"}},
	{name: "Riptide 2.2.1", prefixes: []string{"u221_"}},
	{name: "Riptide over TCP", prefixes: []string{"t2"}},
	{name: "Pytide 2.0.0", prefixes: []string{"upy200_", "tpy200_"}, acksNone: true, backward: true},
	{name: "Pytide 2.1.0", prefixes: []string{"upy_", "tpy_"}, backward: true},
}

var captureName = regexp.MustCompile(`^([ut]\w+)\.(client|server)\.pcap(ng)?\.gz$`)

// unclear are the runs whose logs do not tell the messages of one connection from those of another,
// or that log only a part.
var unclear = []string{
	"u210_lobby", "u210_three_noquality", "u210_rwrap", "upy_three", "upy_half_open",
	"upy200_cs200", "upy200_cs200_server",
}

// relayed is the id of the messages that the server passes on, without a line in its log.
const relayed = 31

func unzip(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return text
}

// riptideRun is a capture of a run, with the logs of both ends.
type riptideRun struct {
	name, tap string
	log       *riptidelog.Run
	first     machine.Instant // when the capture begins
}

// key identifies a message within a connection. id is -1 for none.
type key struct {
	mode    string
	id, seq int
}

func keyOf(m *machine.Message) key {
	k := key{m.Mode.String(), -1, int(m.Sequence)}
	if m.Mode != machine.ModeNotify {
		k.id = int(m.ID)
	}
	return k
}

// times returns when an end of a connection logged an event of each message, in order.
func (r *riptideRun) times(end, remote, event string) map[key][]machine.Instant {
	out := map[key][]machine.Instant{}
	for _, l := range r.log.Of(end, remote) {
		at := machine.Instant(l.T * 1e9)
		if l.Event != event || event == "receive" && at < r.first {
			continue
		}
		k := key{l.Mode, -1, l.Seq}
		if l.MessageID != nil {
			k.id = *l.MessageID
		}
		out[k] = append(out[k], at)
	}
	return out
}

// compare adds the messages of a capture to the rows of a library.
func (r *riptideRun) compare(t *testing.T, path string, rows *group) {
	t.Helper()
	session, messages := messagesOf(t, path, riptide.Protocol)
	r.first, _ = session.Span()
	for _, f := range session.Flows() {
		client, remote := r.log.Client(r.tap, f.A, f.B)
		if f.Protocol == nil || client == "" {
			continue
		}
		ends := [2]string{client, "server"}
		if f.A.Port() == r.log.Server {
			ends = [2]string{"server", client}
		}
		var trips []time.Duration
		var sent, received [2]map[key][]machine.Instant
		for side, end := range ends {
			sent[side], received[side] = r.times(end, remote, "send"), r.times(end, remote, "receive")
			for _, l := range r.log.Of(end, remote) {
				if l.Event == "stats" && l.RTT > 0 {
					trips = append(trips, time.Duration(l.RTT)*time.Millisecond)
				}
			}
		}
		trip := quantile(trips, 0.5)
		for i := range messages[f.ID] {
			m := &messages[f.ID][i]
			k, near := keyOf(m), (ends[m.From.Other()] == "server") == (r.tap == "server")
			times := received[m.From.Other()][k]
			if len(times) == 0 || k.id == relayed {
				continue // lost, or not logged
			}
			if m.Mode == machine.ModeUnreliable {
				if !near || m.Delivered != machine.Yes {
					continue // nothing names it
				}
				received[m.From.Other()][k] = times[1:] // they arrive in the order of the tap
			}
			a := arrival{Message: m, logged: times[0], trip: trip}
			if m.Mode != machine.ModeUnreliable && len(sent[m.From][k]) == 1 {
				a.sent = sent[m.From][k][0]
			}
			rows.add(r.name+"."+r.tap, a, near, handover)
		}
	}
}

// TestRiptideArrivals compares the arrival of each message with the log of its receiver, for each
// library. It holds a table of docs/arrival.md.
func TestRiptideArrivals(t *testing.T) {
	testenv.Long(t, "an analysis of each of the Riptide captures")
	folder := filepath.Dir(testenv.Capture(t, "riptide-messages.yaml"))
	groups := make([]group, len(libraries))
	for i, library := range libraries {
		groups[i] = group{library.name, map[string]*row{}}
		for _, prefix := range library.prefixes {
			paths, err := filepath.Glob(filepath.Join(folder, prefix+"*.pcap*.gz"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				named := captureName.FindStringSubmatch(filepath.Base(path))
				if named == nil || slices.Contains(unclear, named[1]) {
					continue
				}
				log, err := riptidelog.Parse(unzip(t, testenv.Capture(t, named[1]+".truth.jsonl.gz")))
				if err != nil {
					t.Fatal(err)
				}
				(&riptideRun{name: named[1], tap: named[2], log: log}).compare(t, path, &groups[i])
			}
		}
	}
	holdGroups(t, "Riptide", groups, holdsRiptide)
}

// holdsRiptide checks a row of the table.
func holdsRiptide(t *testing.T, r *row, of *group) {
	t.Helper()
	r.holds(t, handoverRare)
	library := &libraries[slices.IndexFunc(libraries, func(l library) bool { return l.name == of.name })]
	reliable, far := strings.HasPrefix(r.name, "reliable"), strings.HasSuffix(r.name, "sender")
	least := 0.8 // of what no Ack names itself
	switch {
	case library.acksNone, library.backward && !reliable:
		least = 0
	case reliable:
		least = 0.95
	}
	if r.share() < least {
		t.Errorf("%.1f%% of %d have certain bounds, expected %.0f%%", 100*r.share(), r.delivered, 100*least)
	}
	// The Ack of a reliable message leaves at once: the peer's send interval adds nothing.
	if reliable && far {
		r.holdsTrip(t, gameFrame)
	}
	if wide := quantile(r.widths, 0.95); reliable && !far && wide > gameFrame+time.Millisecond {
		t.Errorf("bounds are up to %v wide at the receiver's tap, 1 in 20 left out: expected a frame of %v", wide, gameFrame)
	}
	r.holdsEstimate(t, gameFrame)
}

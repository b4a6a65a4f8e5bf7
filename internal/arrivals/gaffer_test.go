package arrivals

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/schema/yamlfile"
	common "github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// yojimboRuns are the recorded runs of yojimbo. A frame reads the socket, hands the messages to
// the game and sends, in that order. The log has each packet when the frame reads it.
var yojimboRuns = []string{
	"yojimbo-clean", "yojimbo-testmsgs-loss10", "yojimbo-blocks-loss30", "yojimbo-two-clients",
	"yojimbo-single-channel-type", "yojimbo-packet-fragments", "yojimbo-denied-full", "yojimbo-wrong-key",
	"yojimbo-server-kick",
}

// gafferLine is one line of a run's log; see testdata/pcaps/README.md.
type gafferLine struct {
	T          float64 `json:"t"`
	Endpoint   string  `json:"endpoint"`
	Conn       int     `json:"conn"`
	Event      string  `json:"event"`
	Seq        uint16  `json:"seq"`
	Channel    int     `json:"channel"`
	ID         int     `json:"id"`
	Chunk      int     `json:"chunk"`
	Type       int     `json:"type"`
	Plain      string  `json:"plain"`
	Key        string  `json:"key"`
	Key8       string  `json:"key8"`
	RTT        float64 `json:"rtt"`
	Client     int     `json:"client_index"`
	ProtocolID string  `json:"protocol_id"`
	PrivateKey string  `json:"private_key"`
	Schema     string  `json:"message_schema"`
	Types      int     `json:"num_message_types"`
	TickHz     float64 `json:"tick_hz"`
	Channels   []struct {
		Type              string `json:"type"`
		DisableBlocks     bool   `json:"disableBlocks"`
		MaxMessages       int    `json:"maxMessagesPerPacket"`
		MaxBlockSize      int    `json:"maxBlockSize"`
		BlockFragmentSize int    `json:"blockFragmentSize"`
		SendQueue         int    `json:"messageSendQueueSize"`
		ReceiveQueue      int    `json:"messageReceiveQueueSize"`
	} `json:"channels"`
}

// yojimboRun is a run's log, and what its lines show of messages.
type yojimboRun struct {
	name   string
	lines  []gafferLine
	config gafferLine // of the server
	game   *wire.Yojimbo
	slot   map[int]int    // the server's number of each client
	key    map[string]int // the client whose session a key is of, by its first digits
}

// readLog returns the lines of a run's log.
func readLog(t *testing.T, run string) (lines []gafferLine) {
	t.Helper()
	f, err := os.Open(testenv.Capture(t, run+".truth.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(z)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var l gafferLine
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v in %.200s", run, err, scan.Bytes())
		}
		lines = append(lines, l)
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func readYojimbo(t *testing.T, name string) *yojimboRun {
	t.Helper()
	r := &yojimboRun{name: name, lines: readLog(t, name), slot: map[int]int{}, key: map[string]int{}}
	for i := range r.lines {
		switch l := &r.lines[i]; {
		case l.Event == "config" && l.Endpoint == "server":
			r.config = *l
		case l.Event == "netcode_key" && l.Endpoint == "client":
			r.key[l.Key[:8]] = l.Conn
		case l.Event == "connected":
			r.slot[l.Conn] = l.Client
		}
	}
	r.game = &wire.Yojimbo{MessageTypes: r.config.Types, Bodies: bodies(r.config.Schema)}
	switch r.config.Schema {
	case "game":
		r.game.BlockTypes = []uint32{3}
	case "yojimbo-test":
		r.game.BlockTypes = []uint32{1}
	}
	for _, c := range r.config.Channels {
		x := wire.YojimboChannel{
			DisableBlocks: c.DisableBlocks, MaxMessages: c.MaxMessages, MaxBlockSize: c.MaxBlockSize,
			BlockFragmentSize: c.BlockFragmentSize, SendQueue: c.SendQueue, ReceiveQueue: c.ReceiveQueue,
		}
		if x.Type = wire.ReliableOrdered; c.Type == "unreliable_unordered" {
			x.Type = wire.UnreliableUnordered
		}
		r.game.Channels = append(r.game.Channels, x)
	}
	if err := r.game.Validate(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// bodies skips the messages of a schema, by its name in the logs.
type bodies string

// Skip reads a message's body.
func (b bodies) Skip(kind uint32, r *bits.Reader) error {
	size := 0
	switch {
	case b != "game":
		sequence, ok := r.Bits(16)
		if size = []int{
			1, 320, 120, 4, 256, 45, 11, 13, 101, 100, 84, 95, 203, 2, 3, 8, 512, 5, 3, 7, 50,
		}[sequence%21]; kind == 1 || !ok {
			size = 0
		}
	case kind == 0:
		size = 32 + 11 + 11 + 1
	case kind == 1:
		n, _ := r.Bits(6)
		r.Align()
		size = 8 * int(n)
	case kind == 2:
		size = 3*32 + 64
	case kind == 3:
		size = 16
	}
	for ; size > 0; size -= min(size, 64) {
		if _, ok := r.Bits(min(size, 64)); !ok {
			return &common.ParseError{Field: "body", Bit: r.Pos(), Err: common.ErrShort}
		}
	}
	return nil
}

// piece is a part of a reliable message: its channel and id, and the fragment of its block, or -1.
type piece struct {
	channel  int
	id       uint16
	fragment int
}

// end is what the log of one connection shows of one sender's messages.
type end struct {
	read     map[uint16]machine.Instant // when the peer read each packet
	parts    map[piece]int              // of each message: its fragments, or 1
	arrived  map[piece]machine.Instant  // when the peer read each part
	ordered  map[piece]machine.Instant  // when the peer's game was handed each reliable message
	sent     map[uint16]machine.Instant // when each packet left
	carriers map[piece][]uint16
	trip     time.Duration // the usual round trip, as the client's library has it
}

// sender reads what an endpoint sent on a client's connection, and when its peer read that. slot is
// the server's number of the connection.
func (r *yojimboRun) sender(t *testing.T, endpoint, peer string, client, slot int) *end {
	t.Helper()
	conn := map[string]int{"client": client, "server": slot}
	e := &end{
		read: map[uint16]machine.Instant{}, parts: map[piece]int{}, arrived: map[piece]machine.Instant{},
		ordered: map[piece]machine.Instant{}, sent: map[uint16]machine.Instant{}, carriers: map[piece][]uint16{},
	}
	reliable, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	var trips []time.Duration
	pieces := map[uint32][][]byte{}
	for i := range r.lines {
		l := &r.lines[i]
		at := machine.Instant(l.T * 1e9)
		switch {
		case l.Endpoint == peer && l.Conn == conn[peer] && l.Event == "received":
			if _, again := e.read[l.Seq]; !again {
				e.read[l.Seq] = at
			}
		case l.Endpoint == peer && l.Conn == conn[peer] && l.Event == "msg_received":
			e.ordered[piece{l.Channel, uint16(l.ID), -1}] = at
		case l.Endpoint == endpoint && l.Conn == conn[endpoint] && l.Event == "sent":
			e.sent[l.Seq] = at
		case l.Endpoint == "client" && l.Conn == client && l.Event == "stats" && l.RTT > 0:
			trips = append(trips, time.Duration(l.RTT*1e6))
		case l.Endpoint == endpoint && r.key[l.Key8] == client && l.Event == "netcode_tx" && l.Type == 5:
			plain, err := hex.DecodeString(l.Plain)
			if err != nil {
				t.Fatal(err)
			}
			var p wire.Packet
			if err := reliable.Parse(plain, len(plain), &p); err != nil {
				t.Fatalf("%s: %v", r.name, err)
			}
			payload := plain[p.PayloadOffset:]
			if p.Kind == wire.KindFragment {
				if pieces[p.Sequence] == nil {
					pieces[p.Sequence] = make([][]byte, p.FragmentCount)
				}
				pieces[p.Sequence][p.FragmentID] = payload
				if p.FragmentID < p.FragmentCount-1 {
					continue
				}
				payload = bytes.Join(pieces[p.Sequence], nil)
			}
			e.carry(t, r.game, uint16(p.Sequence), payload)
		}
	}
	e.trip = quantile(trips, 0.5)
	for x, carriers := range e.carriers {
		for _, seq := range carriers {
			if at, ok := e.read[seq]; ok && (e.arrived[x] == 0 || at < e.arrived[x]) {
				e.arrived[x] = at
			}
		}
	}
	return e
}

func (e *end) carry(t *testing.T, game *wire.Yojimbo, seq uint16, payload []byte) {
	t.Helper()
	var p wire.ConnectionPacket
	if err := game.Parse(payload, &p); err != nil {
		t.Fatal(err)
	}
	for _, entry := range p.Entries {
		if game.Channels[entry.Channel].Type != wire.ReliableOrdered {
			continue
		}
		add := func(id uint16, fragment, parts int) {
			x := piece{entry.Channel, id, fragment}
			e.carriers[x] = append(e.carriers[x], seq)
			e.parts[piece{entry.Channel, id, -1}] = parts
		}
		if entry.Block {
			add(entry.Fragment.ID, entry.Fragment.Index, entry.Fragment.Count)
			continue
		}
		for _, m := range p.Messages[entry.First : entry.First+entry.Count] {
			add(m.ID, -1, 1)
		}
	}
}

// logged returns when the receiver had all of a message, as the log says. It is 0 if it never had.
func (e *end) logged(m *machine.Message) (last machine.Instant) {
	if m.Mode != machine.ModeReliable {
		return e.read[uint16(m.Sequence)]
	}
	x := piece{m.Channel, uint16(m.ID), -1}
	n := e.parts[x]
	if n == 1 && m.Block == 0 {
		return e.arrived[x]
	}
	for i := range n {
		x.fragment = i
		if e.arrived[x] == 0 {
			return 0
		}
		last = max(last, e.arrived[x])
	}
	return last
}

// frame returns the frame time of both ends.
func (r *yojimboRun) frame() time.Duration { return time.Duration(1e9 / r.config.TickHz) }

// around returns how long after its packet before a side sent the one that follows an instant. A
// frame sends one packet. It takes longer where the process or the machine halts.
func (e *end) around(at machine.Instant) time.Duration {
	before, after := machine.Instant(math.MinInt64), machine.Instant(math.MaxInt64)
	for _, sent := range e.sent {
		if sent < at {
			before = max(before, sent)
		} else {
			after = min(after, sent)
		}
	}
	if before == math.MinInt64 || after == math.MaxInt64 {
		return 0
	}
	return after.Sub(before)
}

// left returns when a message first left, as the log says.
func (e *end) left(m *machine.Message) machine.Instant {
	if m.Mode != machine.ModeReliable {
		return e.sent[uint16(m.Sequence)]
	}
	x := piece{m.Channel, uint16(m.ID), -1}
	if m.Block > 0 {
		x.fragment = 0
	}
	if len(e.carriers[x]) == 0 {
		return 0
	}
	return e.sent[e.carriers[x][0]]
}

// protocol reads the run as a user would who has its key, and knows how its game packs messages,
// or not.
func (r *yojimboRun) protocol(t *testing.T, inferred bool) *dissect.Protocol {
	t.Helper()
	text := fmt.Sprintf(`{"servers": [{"protocol_id": "0x%s", "private_key": "%s"}]}`, r.config.ProtocolID,
		r.config.PrivateKey)
	var f netcode.KeyFile
	if err := yamlfile.Read([]byte(text), "keys.yaml", &f); err != nil {
		t.Fatal(err)
	}
	keys, err := netcode.NewKeys(&f)
	if err != nil {
		t.Fatal(err)
	}
	var extra []dissect.Profile
	if !inferred {
		extra = []dissect.Profile{{Name: "game", Config: &dissect.Config{Dialect: "game", Profile: r.game}}}
	}
	return gaffer.WithKeys(extra, keys)
}

// readSlack is how much later the log can have a packet than the header that shows it as read. A
// frame reads the clock once for its log and once for the capture.
const readSlack = 500 * time.Microsecond

// found is a message of a run, and what its bounds are compared with.
type found struct {
	arrival
	what    string
	near    bool            // the tap is at its receiver
	ordered machine.Instant // when its receiver's game was handed it; 0 if it was not
	frame   time.Duration   // of the receiver, in which it read the message
}

// messages analyzes a capture of the run, and calls see for each message that was read.
func (r *yojimboRun) messages(t *testing.T, tap string, inferred bool, see func(f *found)) {
	t.Helper()
	session, messages := messagesOf(t, testenv.Capture(t, r.name+"."+tap+".pcap.gz"), r.protocol(t, inferred))
	client := -1
	for _, f := range session.Flows() {
		if f.Protocol == nil {
			continue
		}
		client++ // in the order in which they came
		slot, ok := r.slot[client]
		if !ok {
			continue // it never became a connection
		}
		ends := [2]*end{r.sender(t, "client", "server", client, slot), r.sender(t, "server", "client", client, slot)}
		for i := range messages[f.ID] {
			m := &messages[f.ID][i]
			e := ends[m.From]
			x := found{
				arrival: arrival{Message: m, logged: e.logged(m), sent: e.left(m), trip: e.trip},
				what:    fmt.Sprintf("%s.%s channel %d id %d", r.name, tap, m.Channel, m.ID),
				near:    (tap == "server") == (m.From == machine.A),
			}
			x.frame = max(ends[m.From.Other()].around(x.logged), r.frame())
			if m.Mode == machine.ModeReliable {
				x.ordered = e.ordered[piece{m.Channel, uint16(m.ID), -1}]
			}
			if x.logged != 0 {
				see(&x)
			} else if m.Arrived.Certainty == machine.Certain {
				t.Errorf("%s: arrived for certain, and no log has it", x.what)
			}
		}
	}
}

// TestYojimboArrivals compares when messages arrived with the logs of both ends. It holds a table of
// docs/arrival.md.
func TestYojimboArrivals(t *testing.T) {
	groups := []group{
		{"yojimbo 1.9.1, its configuration given", map[string]*row{}},
		{"yojimbo 1.9.1, its configuration inferred", map[string]*row{}},
	}
	for _, name := range yojimboRuns {
		r := readYojimbo(t, name)
		for _, tap := range []string{"client", "server"} {
			for i := range groups {
				if i == 1 && !strings.HasSuffix(name, "loss10") && !strings.HasSuffix(name, "loss30") {
					continue // two runs are enough to compare
				}
				order := &row{}
				var off []time.Duration // of the estimated time on the way, at the receiver's tap
				r.messages(t, tap, i == 1, func(x *found) {
					groups[i].add(x.what, x.arrival, x.near, readSlack)
					if x.near && x.Arrived.Known() && x.Arrived.Width()-readSlack > x.frame {
						t.Errorf("%s: bounds are %v wide at the receiver's tap, expected its frame of %v", x.what, x.Arrived.Width(),
							x.frame)
					}
					if about := x.About(); x.near && x.Attempts == 1 && about >= 0 && x.sent != 0 {
						off = append(off, (about - x.logged.Sub(x.sent)).Abs())
					}
					if x.ordered != 0 {
						inOrder := *x.Message
						inOrder.Arrived, inOrder.Sent = x.InOrder, machine.Span{}
						order.add(x.what+" in order", arrival{Message: &inOrder, logged: x.ordered}, readSlack)
					}
				})
				order.holds(t, 0)
				if mid := quantile(off, 0.5); mid > r.frame() {
					t.Errorf("%s.%s: the time on the way is off by %v in the median, expected a frame at most", name, tap, mid)
				}
				if share := order.share(); share < 0.9 {
					t.Errorf("%s.%s: %.1f%% of the messages have certain bounds of their order, expected 90%%", name, tap, 100*share)
				}
			}
		}
	}
	holdGroups(t, "yojimbo", groups, func(t *testing.T, r *row, of *group) {
		t.Helper()
		r.holds(t, 0)
		unread := of == &groups[1] && strings.HasPrefix(r.name, "unreliable") // what stays open of the configuration decides
		if r.share() < 0.9 && !unread {
			t.Errorf("%.1f%% of %d have certain bounds, expected 90%%", 100*r.share(), r.delivered)
		}
		if strings.HasSuffix(r.name, "sender") {
			r.holdsTrip(t, yojimboFrame)
			r.holdsEstimate(t, yojimboFrame)
		}
	})
}

// yojimboFrame is the frame time of most of the runs. The others have 50 and 100 ms.
const yojimboFrame = time.Second / 30

// TestArticleArrivals compares when blocks arrived with the log of the article's sample that
// receives them. It holds a table of docs/arrival.md.
func TestArticleArrivals(t *testing.T) {
	const run = "article-chunks-loss25"
	lines := readLog(t, run)
	started, received := map[int]machine.Instant{}, map[int]machine.Instant{}
	for i := range lines {
		switch l := &lines[i]; l.Event {
		case "chunk_start":
			started[l.Chunk] = machine.Instant(l.T * 1e9)
		case "chunk_received":
			received[l.Chunk] = machine.Instant(l.T * 1e9)
		}
	}
	groups := []group{{"sample 004 of the article, blocks", map[string]*row{}}}
	for _, tap := range []string{"client", "server"} {
		session, messages := messagesOf(t, testenv.Capture(t, run+"."+tap+".pcap.gz"), gaffer.Protocol)
		for _, f := range session.Flows() {
			for i := range messages[f.ID] {
				m := &messages[f.ID][i]
				what := fmt.Sprintf("%s.%s block %d", run, tap, m.ID)
				logged, ok := received[int(m.ID)]
				if !ok {
					if m.Arrived.Certainty == machine.Certain {
						t.Errorf("%s: arrived for certain, and no log has it", what)
					}
					continue
				}
				groups[0].add(what, arrival{Message: m, logged: logged, sent: started[int(m.ID)]}, tap == "server", readSlack)
			}
		}
	}
	holdGroups(t, "article", groups, func(t *testing.T, r *row, _ *group) {
		t.Helper()
		r.holds(t, 0)
		// The first block may have begun before the capture, and no ack of the last one passed.
		if r.certain < r.delivered-2 {
			t.Errorf("%d of %d have certain bounds, expected all but two", r.certain, r.delivered)
		}
	})
}

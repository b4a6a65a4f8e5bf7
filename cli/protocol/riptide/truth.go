package riptide

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/sim"
)

// riptideLog is what the endpoints of a run did, as the truth files beside the
// recorded captures tell it: a line of JSON an event, by rising time.
type riptideLog struct {
	cast  *riptideCast
	s     *simulate.Simulation
	lines []map[string]any
	tally map[*sim.Host]*riptideTally
	// What the application is about to submit.
	values schema.Record
	body   *schema.Body
}

// riptideTally counts what one host did.
type riptideTally struct {
	sent                    [3]int // by channel
	resent, acked, received int
	attempts                map[sentMessage]int
	told                    map[machine.Peer][2]int // RTTs that were last told
	smoothed                int
}

type sentMessage struct {
	peer     machine.Peer
	channel  uint8
	sequence int64
}

var riptideModes = [...]string{"unreliable", "reliable", "notify"}

func (l *riptideLog) begin(c *riptideCast, s *simulate.Simulation) {
	l.cast, l.s, l.tally = c, s, map[*sim.Host]*riptideTally{}
	transport := "udp"
	if s.Stream {
		transport = "tcp"
	}
	f := c.flags
	l.add(0, "relay", "start", map[string]any{"seed": f.Seed, "loss": f.Loss, "delay": f.Delay, "jitter": f.Jitter, "duplicate": f.Dup})
	for _, h := range s.World.Hosts() {
		l.tally[h] = &riptideTally{attempts: map[sentMessage]int{}, told: map[machine.Peer][2]int{}, smoothed: -1}
		line := map[string]any{"role": "client", "version": c.versions[0].Build.Name, "transport": transport, "server_address": s.Addrs[0].String()}
		if h.Index == 0 {
			line = map[string]any{"role": "server", "version": c.versions[1].Build.Name, "transport": transport, "port": s.Addrs[0].Port()}
		}
		l.add(0, h.Name, "start", line)
	}
	for _, h := range s.World.Hosts()[1:] {
		addr := s.Addrs[h.Index]
		l.add(0, "relay", "flow", map[string]any{"flow": h.Index - 1, "client": addr.String(), "relay_toward_server": addr.String()})
		l.add(0, h.Name, "local_endpoint", map[string]any{"local_port": addr.Port()})
	}
	s.World.Watch(l.watch)
}

func (l *riptideLog) of(h *sim.Host) *riptideTally { return l.tally[h] }

func (l *riptideLog) add(at machine.Instant, endpoint, event string, line map[string]any) {
	line["t"], line["endpoint"], line["event"] = math.Round(float64(at+simulate.Epoch)/1e3)/1e6, endpoint, event
	l.lines = append(l.lines, line)
}

// watch takes down what one step did.
func (l *riptideLog) watch(step *sim.Step) {
	h, t := step.Host, l.tally[step.Host]
	e := h.Endpoint().(*endpoint.Endpoint)
	about := func(peer machine.Peer, line map[string]any) map[string]any {
		line["client_id"] = e.ClientID(peer)
		if h.Index == 0 {
			line["remote"] = l.s.Addrs[1+int(peer)].String()
		}
		return line
	}
	if in, ok := step.In.(machine.Command); ok {
		l.add(step.At, h.Name, in.Kind.String()+"_call", about(in.Peer, map[string]any{}))
	}
	for i := range step.Out.Events {
		event := &step.Out.Events[i]
		if word, line := l.event(t, step, event); word != "" {
			l.add(step.At, h.Name, word, about(event.Peer, line))
		}
	}
	for i := range step.Out.Deliver {
		d := &step.Out.Deliver[i]
		if int(d.Channel) >= len(riptideModes) {
			continue
		}
		t.received++
		line := map[string]any{"mode": riptideModes[d.Channel]}
		if d.Channel != riptide.ChannelNotify {
			line["message_id"] = d.Type
		}
		if d.Channel != riptide.ChannelUnreliable {
			line["seq"] = d.ID
		}
		l.add(step.At, h.Name, "receive", about(d.From, line))
	}
	for peer := range l.peers(h) {
		rtt, smoothed := e.RTT(machine.Peer(peer))
		if smoothed < 0 || t.told[machine.Peer(peer)] == [2]int{rtt, smoothed} {
			continue
		}
		t.told[machine.Peer(peer)], t.smoothed = [2]int{rtt, smoothed}, smoothed
		l.add(step.At, h.Name, "stats", about(machine.Peer(peer), map[string]any{"rtt": rtt, "smooth_rtt": smoothed}))
	}
}

func (l *riptideLog) peers(h *sim.Host) int {
	if h.Index == 0 {
		return l.cast.flags.Clients
	}
	return 1
}

// event gives the word and the line of an event; an empty word for one that
// the logs do not have.
func (l *riptideLog) event(t *riptideTally, step *sim.Step, e *machine.Event) (word string, line map[string]any) {
	key := sentMessage{e.Peer, e.Channel, e.Sequence64}
	line = map[string]any{}
	if int(e.Channel) < len(riptideModes) {
		line["mode"] = riptideModes[e.Channel]
	}
	if e.Channel != riptide.ChannelUnreliable {
		line["seq"] = e.Sequence
	}
	user := int(e.Channel) < len(riptideModes)
	switch e.Kind {
	case machine.EventSent:
		t.attempts[key] = 1
		in, ok := step.In.(machine.Submit)
		if !ok || !user {
			return "", nil
		}
		t.sent[e.Channel]++
		if e.Channel != riptide.ChannelNotify {
			line["message_id"] = uint16(in.Type)
		}
		if in.To >= 1<<31 {
			line["to_all"] = true
		}
		line["values"] = l.drawn()
		return "send", line
	case machine.EventResent:
		t.attempts[key]++
		t.resent++
	case machine.EventAcked:
		if e.Channel == riptide.ChannelNotify {
			return "notify_delivered", line
		}
		line["attempts"] = t.attempts[key]
		delete(t.attempts, key)
		if user {
			t.acked++
			return "acked", line
		}
	case machine.EventLost:
		if e.Channel == riptide.ChannelNotify {
			return "notify_lost", line
		}
		if user {
			return "acked_or_given_up", line
		}
	default:
		return l.lifeEvent(e)
	}
	return "", nil
}

// lifeEvent gives the line of an event of the connection's life.
func (l *riptideLog) lifeEvent(e *machine.Event) (word string, line map[string]any) {
	dialect := l.cast.dialect()
	switch word = endpoint.ReferenceEventNames[e.Kind]; e.Kind {
	case endpoint.EventEnded:
		return word, map[string]any{"reason": dialect.DisconnectReason(uint8(e.Sequence)), "reason_code": e.Sequence}
	case riptide.EventFailed:
		if e.Sequence == riptide.NoReason {
			return word, map[string]any{}
		}
		return word, map[string]any{"reason": dialect.RejectReason(uint8(e.Sequence)), "reason_code": e.Sequence}
	case riptide.EventClientConnected, riptide.EventClientDisconnected:
		return word, map[string]any{"id": e.Sequence}
	}
	return word, map[string]any{}
}

// drawn gives the values that the application submits.
func (l *riptideLog) drawn() []map[string]any {
	out := []map[string]any{}
	for i, v := range l.values {
		raw, err := json.Marshal(schema.Record{v})
		var named map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal(raw, &named)
		}
		if err != nil {
			named = map[string]json.RawMessage{v.Name: []byte(fmt.Sprintf("%q", err))}
		}
		line := map[string]any{"value": named[v.Name]}
		if i < len(l.body.Fields) {
			line["type"] = typeName(l.body.Fields[i])
		}
		out = append(out, line)
	}
	return out
}

func typeName(f *schema.Field) string {
	if f.Type == "array" && f.Item != nil {
		return f.Item.Type + "[]"
	}
	return f.Type
}

// write writes the truth.
func (l *riptideLog) write(w io.Writer) error {
	buffered := bufio.NewWriter(w)
	lines := json.NewEncoder(printable.JSONWriter(buffered))
	for _, line := range l.lines {
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	for _, h := range l.s.World.Hosts() {
		at := math.Round(float64(l.s.World.Now()+simulate.Epoch)/1e3) / 1e6
		if err := lines.Encode(map[string]any{"t": at, "endpoint": h.Name, "event": "end"}); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

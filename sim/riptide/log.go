package riptide

import (
	"net/netip"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Form holds the differences between the logs of the two commands.
type Form struct {
	// Settings writes four things to the first line: the release as it was requested, the seed, the
	// time between updates and the slots. Without it the line names the build.
	Settings bool
	// Calls adds the peer to the line of a call.
	Calls bool
	// Reasons adds the name of the reason for the end of a connection, and writes other clients as id.
	// Without it they are client_id.
	Reasons bool
	// Stats adds a line when the smoothed round trip of a peer changes. Without it a client's last
	// line has it.
	Stats bool
	// Unsent writes the fate of notify messages that were never sent. A forged header settles half of
	// all sequences at once.
	Unsent bool
	// GivenUp is the event's name when a reliable message is no longer sent. Attempts adds the number
	// of its copies.
	GivenUp  string
	Attempts bool
	// Submitted returns the values of the message that the application submits. If it is nil, the log
	// has the values of the kit's own messages, received ones too.
	Submitted func() []sim.Line
}

// Log describes an endpoint in the format of the programs that wrote the logs of the recorded
// captures.
type Log struct {
	Tally Tally

	kit      *Kit
	form     *Form
	role     sim.Role
	endpoint *endpoint.Endpoint
	addrs    map[machine.Peer]netip.AddrPort
	attempts map[message]int  // of reliable messages that are not acked
	notified map[message]bool // notify messages whose fate is open
	reported map[machine.Peer][2]int
}

// Tally counts the messages of the applications.
type Tally struct {
	Sent            [3]int // by channel
	Acked, Received int
	Smoothed        int // last logged round trip in ms; -1 before
}

// message identifies a message of an endpoint.
type message struct {
	peer     machine.Peer
	channel  uint8
	sequence int64
}

func newLog(k *Kit, role sim.Role, e *endpoint.Endpoint) *Log {
	return &Log{
		Tally: Tally{Smoothed: -1}, kit: k, form: &k.Form, role: role, endpoint: e, addrs: map[machine.Peer]netip.AddrPort{},
		attempts: map[message]int{}, notified: map[message]bool{}, reported: map[machine.Peer][2]int{},
	}
}

var modes = [...]string{
	riptide.ChannelUnreliable: "unreliable", riptide.ChannelReliable: "reliable",
	riptide.ChannelNotify: "notify",
}

// Opening implements sim.Describer.
func (l *Log) Opening(own, to netip.AddrPort) (lines []sim.Line) {
	version, transport := l.kit.Versions[l.role], "udp"
	if l.kit.Stream {
		transport = "tcp"
	}
	line := sim.Line{"event": "start", "role": l.role.String(), "version": version.Build.Name, "transport": transport}
	if l.form.Settings {
		line["version"], line["seed"], line["tick_ms"] = version.Name, l.kit.Seed, float64(l.kit.Tick)/1e6
	}
	if l.role == sim.Server {
		line["port"] = own.Port()
		if l.form.Settings {
			line["max_clients"] = l.kit.Slots
		}
		return []sim.Line{line}
	}
	line["server_address"] = to.String()
	lines = append(lines, line)
	if own.IsValid() {
		lines = append(lines, l.Opened(own))
	}
	return lines
}

// Opened implements sim.Describer.
func (l *Log) Opened(own netip.AddrPort) sim.Line {
	return sim.Line{"event": "local_endpoint", "local_port": own.Port()}
}

// Met implements sim.Describer.
func (l *Log) Met(peer machine.Peer, at netip.AddrPort) sim.Line {
	l.addrs[peer] = at
	return nil
}

// line begins a line about a peer.
func (l *Log) line(event string, peer machine.Peer) sim.Line {
	line := sim.Line{"event": event, "client_id": l.endpoint.ClientID(peer)}
	if l.role == sim.Server {
		line["remote"] = l.addrs[peer].String()
	}
	return line
}

// message begins a line about a message in a mode, which is its channel.
func (l *Log) message(event string, peer machine.Peer, channel uint8, sequence uint64) sim.Line {
	line := l.line(event, peer)
	line["mode"] = modes[channel]
	if channel != riptide.ChannelUnreliable {
		line["seq"] = sequence
	}
	return line
}

// content adds the contents of an application's message.
func (l *Log) content(line sim.Line, channel uint8, kind uint32, payload []byte) {
	if channel != riptide.ChannelNotify {
		line["message_id"] = uint16(kind)
	}
	if l.form.Submitted == nil {
		line["values"] = valuesOf(l.endpoint.Options().Codec, channel, uint16(kind), payload)
	}
}

// Step implements sim.Describer.
func (l *Log) Step(step *sim.Step) (lines []sim.Line) {
	add := func(line sim.Line) {
		if line != nil {
			lines = append(lines, line)
		}
	}
	if c, ok := step.In.(machine.Command); ok {
		add(l.call(&c))
	}
	for i := range step.Out.Events {
		line := l.event(step, &step.Out.Events[i])
		l.attach(line, step, &step.Out.Events[i])
		add(line)
	}
	for i := range step.Out.Deliver {
		add(l.received(&step.Out.Deliver[i]))
	}
	if l.form.Stats {
		for peer := range machine.Peer(len(l.addrs)) {
			add(l.stats(peer))
		}
	}
	return lines
}

func (l *Log) call(c *machine.Command) sim.Line {
	word := c.Kind.String() + "_call"
	line := sim.Line{"event": word}
	if l.form.Calls {
		line = l.line(word, c.Peer)
	}
	switch c.Kind {
	case machine.Connect:
		l.data(line, "connect_values", c.Payload)
	case machine.Reject:
		l.data(line, "reject_values", c.Payload)
	case machine.Kick:
		l.data(line, "kick_values", c.Payload)
	}
	return line
}

// dataNames are the names of the data that comes with an event.
var dataNames = map[machine.EventKind]string{
	endpoint.EventAttempted: "connect_values", riptide.EventFailed: "reject_values", endpoint.EventEnded: "kick_values",
}

// attach adds the data that came with an event of the connection.
func (l *Log) attach(line sim.Line, step *sim.Step, e *machine.Event) {
	for i := range step.Out.Deliver {
		d := &step.Out.Deliver[i]
		if line != nil && d.Channel == riptide.ChannelData && d.From == e.Peer && d.Type == uint32(e.Kind) {
			l.data(line, dataNames[e.Kind], d.Payload)
		}
	}
}

// data adds the data of a Connect, a Reject or a kick: the text that the applications of a kit put there.
func (l *Log) data(line sim.Line, name string, payload []byte) {
	r := l.endpoint.Options().Codec.Values(payload, &wire.Message{BodyBits: 8 * len(payload)})
	if text, err := r.Text(nil); err == nil && len(text) > 0 {
		line[name] = []sim.Line{{"type": "string", "value": string(text)}}
	}
}

// event returns the line of an event, or nil for one that the logs do not have.
func (l *Log) event(step *sim.Step, e *machine.Event) sim.Line {
	if word := endpoint.ReferenceEventNames[e.Kind]; word != "" {
		return l.connectionEvent(word, e)
	}
	if e.Kind == machine.EventSent || e.Kind == machine.EventResent {
		return l.sent(step, e)
	}
	if int(e.Channel) >= len(modes) {
		return nil
	}
	if e.Channel == riptide.ChannelNotify {
		return l.notifyEnd(e)
	}
	return l.reliableEnd(e)
}

// connectionEvent returns the line of an event of the connection.
func (l *Log) connectionEvent(word string, e *machine.Event) sim.Line {
	line := l.line(word, e.Peer)
	comes := e.Kind == riptide.EventClientConnected || e.Kind == riptide.EventClientDisconnected
	dialect := l.kit.Versions[l.role].Build.Dialect
	switch {
	case !l.form.Reasons && (comes || e.Kind == riptide.EventConnected):
		line["client_id"] = e.Sequence
	case !l.form.Reasons:
		line["reason_code"] = e.Sequence
	case comes:
		line["id"] = e.Sequence
	case e.Kind == endpoint.EventEnded:
		line["reason"], line["reason_code"] = dialect.DisconnectReason(uint8(e.Sequence)), e.Sequence
	case e.Kind == riptide.EventFailed && e.Sequence != riptide.NoReason:
		line["reason"], line["reason_code"] = dialect.RejectReason(uint8(e.Sequence)), e.Sequence
	}
	return line
}

// sent returns the line of an application's message that is sent for the first time.
func (l *Log) sent(step *sim.Step, e *machine.Event) sim.Line {
	m := message{e.Peer, e.Channel, e.Sequence64}
	switch {
	case e.Channel == riptide.ChannelReliable && e.Kind == machine.EventResent:
		l.attempts[m]++
	case e.Channel == riptide.ChannelReliable:
		l.attempts[m] = 1
	case e.Channel == riptide.ChannelNotify:
		l.notified[m] = true
	}
	in, ok := step.In.(machine.Submit)
	if !ok || e.Kind == machine.EventResent || int(e.Channel) >= len(modes) {
		return nil
	}
	l.Tally.Sent[e.Channel]++
	line := l.message("send", e.Peer, e.Channel, uint64(e.Sequence))
	l.content(line, e.Channel, in.Type, in.Payload)
	if l.form.Submitted != nil {
		line["values"] = l.form.Submitted()
	}
	if in.To >= 1<<31 {
		line["to_all"] = true
	}
	return line
}

// notifyEnd returns the line of a notify message that arrived, or was lost.
func (l *Log) notifyEnd(e *machine.Event) sim.Line {
	var word string
	switch e.Kind {
	case machine.EventAcked:
		word = "notify_delivered"
	case machine.EventLost:
		word = "notify_lost"
	default:
		return nil
	}
	m := message{e.Peer, e.Channel, e.Sequence64}
	if !l.notified[m] && !l.form.Unsent {
		return nil
	}
	delete(l.notified, m)
	return l.message(word, e.Peer, e.Channel, uint64(e.Sequence))
}

// reliableEnd returns the line of a reliable message that is no longer sent.
func (l *Log) reliableEnd(e *machine.Event) sim.Line {
	m := message{e.Peer, e.Channel, e.Sequence64}
	var word string
	var attempts bool
	switch e.Kind {
	case machine.EventAcked:
		word, attempts = "acked", true
		l.Tally.Acked++
	case machine.EventLost:
		word, attempts = l.form.GivenUp, l.form.Attempts
	default:
		return nil
	}
	line := l.message(word, e.Peer, e.Channel, uint64(e.Sequence))
	if attempts {
		line["attempts"] = l.attempts[m]
		delete(l.attempts, m)
	}
	return line
}

// received returns the line of a message that the application received.
func (l *Log) received(d *machine.Delivery) sim.Line {
	if int(d.Channel) >= len(modes) {
		return nil
	}
	l.Tally.Received++
	line := l.message("receive", d.From, d.Channel, d.ID)
	l.content(line, d.Channel, d.Type, d.Payload)
	return line
}

// stats returns the line of a peer's round trip times, in ms, if they have changed.
func (l *Log) stats(peer machine.Peer) sim.Line {
	rtt, smoothed := l.endpoint.RTT(peer)
	if smoothed < 0 || l.reported[peer] == [2]int{rtt, smoothed} {
		return nil
	}
	l.reported[peer], l.Tally.Smoothed = [2]int{rtt, smoothed}, smoothed
	line := l.line("stats", peer)
	line["rtt"], line["smooth_rtt"] = rtt, smoothed
	return line
}

// Final implements sim.Describer.
func (l *Log) Final() sim.Line {
	line := sim.Line{"event": "end"}
	if rtt, smoothed := l.endpoint.RTT(0); !l.form.Stats && l.role == sim.Client && rtt >= 0 {
		line["rtt"], line["smooth_rtt"] = rtt, smoothed
	}
	return line
}

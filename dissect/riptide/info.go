package riptide

import (
	"errors"
	"strconv"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/riptide"
	common "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Info appends a message's one line for lists: "Reliable seq 5 id 300, 12 bytes".
func Info(ctx dissect.Context, dg *machine.Datagram, to []byte) []byte {
	codec := settingsOf(ctx.Config).Senders[ctx.From].Codec
	var m wire.Message
	err := codec.Parse(dg.Bytes, dg.Length, &m)
	if err != nil && !errors.Is(err, common.ErrTrailing) {
		if errors.Is(err, common.ErrSnapped) {
			return append(to, "cut by the capture's snap length before the end of its header"...)
		}
		to = append(to, "malformed: "...)
		return append(to, err.Error()...)
	}
	to = append(to, m.Type.String()...)
	number := func(name string, v int64) {
		to = append(append(to, ' '), name...)
		to = strconv.AppendInt(append(to, ' '), v, 10)
	}
	acks := func(digits int) {
		number("last", int64(m.Last))
		to = append(to, " bits 0x"...)
		for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
			to = append(to, "0123456789abcdef"[m.AckBits>>shift&15])
		}
	}
	switch m.Type {
	case wire.Ack, wire.AckExtra:
		acks(4)
		if m.Cause != m.Last {
			number("answers", int64(m.Cause))
		}
	case wire.Heartbeat:
		number("ping", int64(m.Ping))
		if m.HasRTT {
			number("rtt", int64(m.RTT))
			to = append(to, " ms"...)
		}
	case wire.Reject, wire.Disconnect:
		if m.HasReason {
			if name := reasonWord(codec.Dialect, &m); name != nil {
				to = append(append(to, ' '), name...)
			} else {
				number("reason", int64(m.Reason))
			}
		}
	case wire.Welcome, wire.ClientConnected, wire.ClientDisconnected:
		number("seq", int64(m.Sequence))
		number("client", int64(m.ClientID))
	case wire.Notify:
		if m.Bare {
			number("id", int64(m.MessageID))
			break
		}
		number("seq", int64(m.Sequence))
		acks(2)
	case wire.Reliable:
		number("seq", int64(m.Sequence))
		number("id", int64(m.MessageID))
	case wire.Unreliable:
		number("id", int64(m.MessageID))
	}
	if m.BodyBits >= 8 {
		to = append(to, ", "...)
		to = strconv.AppendInt(to, int64(m.BodyBits/8), 10)
		to = append(to, " byte"...)
		if m.BodyBits/8 != 1 {
			to = append(to, 's')
		}
	}
	if err != nil {
		to = append(append(to, ", "...), err.Error()...)
	}
	return to
}

// EndReason returns the name of the reason in an event about the connection's end.
func EndReason(c *dissect.Config, e *machine.Event) string {
	dialect := settingsOf(c).Senders[e.Side].Codec.Dialect
	if e.Sequence == model.NoReason {
		return "a client that leaves"
	}
	name := dialect.DisconnectReason(uint8(e.Sequence))
	if e.Kind == model.EventRejected || e.Kind == model.EventFailed {
		name = dialect.RejectReason(uint8(e.Sequence))
	}
	if name == "" {
		return "reason " + strconv.Itoa(int(e.Sequence))
	}
	return name
}

// BehaviourOf returns how a side of a flow behaves.
func BehaviourOf(c *dissect.Config, s machine.Side) *model.Behaviour {
	sender := settingsOf(c).Senders[s]
	return model.BehaviourOf(sender.Codec.Dialect, sender.Builds)
}

// eventNote returns the name of the reason that an event carries.
func eventNote(c *dissect.Config, e *machine.Event) string {
	switch e.Kind {
	case model.EventRejected, model.EventGoodbye, model.EventFailed, model.EventDisconnected:
		return EndReason(c, e)
	}
	return ""
}

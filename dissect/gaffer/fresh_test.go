package gaffer

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Home-grown endpoints begin with ack 0 and no ack bits, where reliable has 0xFFFF.
// Until such an endpoint has received something, its header names nothing and is no
// evidence. Ten datagrams are enough to find the flow.
func TestFreshEndpointsThatBeginTheirAckAtZero(t *testing.T) {
	profile, _, err := wire.Builtin(wire.Article)
	if err != nil {
		t.Fatal(err)
	}
	c := Protocol.Classify()
	for _, p := range []struct {
		from machine.Side
		h    wire.Header
	}{
		{machine.A, wire.Header{Sequence: 0}},
		{machine.A, wire.Header{Sequence: 1}},
		{machine.A, wire.Header{Sequence: 2}},
		{machine.A, wire.Header{Sequence: 3}},
		{machine.A, wire.Header{Sequence: 4}},
		{machine.A, wire.Header{Sequence: 5}},
		{machine.B, wire.Header{Sequence: 3, Ack: 4, AckBits: 0b11111}}, // its first three were lost before the tap
		{machine.A, wire.Header{Sequence: 6}},
		{machine.B, wire.Header{Sequence: 4, Ack: 5, AckBits: 0b111111}},
		{machine.A, wire.Header{Sequence: 7, Ack: 3, AckBits: 0b1}},
	} {
		b := append(profile.AppendHeader(nil, p.h), "payload"...)
		c.Feed(&machine.Datagram{From: p.from, Bytes: b, Length: len(b)})
	}
	if v := c.Verdict(); v.Config == nil || v.Config.Dialect != wire.Article {
		t.Errorf("not found: %s", v.Reason)
	}
}

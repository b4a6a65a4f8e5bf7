package filter_test

import (
	"encoding/hex"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/filter/fields"
	"github.com/ackscope/ackscope/machine"
)

// A toy protocol with a field of every kind.
var (
	toyHeader = &dissect.FieldSpec{Name: "toy.header", Kind: dissect.KindGroup, Doc: "The header."}
	toySeq    = &dissect.FieldSpec{Name: "toy.sequence", Kind: dissect.KindUint, Doc: "Sequence number."}
	toyAck    = &dissect.FieldSpec{Name: "toy.ack", Kind: dissect.KindUint}
	toyBits   = &dissect.FieldSpec{Name: "toy.ack_bits", Kind: dissect.KindUint, Hex: true}
	toyKind   = &dissect.FieldSpec{
		Name: "toy.kind", Kind: dissect.KindUint,
		Enum: map[uint64]string{0: "regular", 1: "fragment"},
	}
	toyFlag   = &dissect.FieldSpec{Name: "toy.flag", Kind: dissect.KindBool}
	toyDelta  = &dissect.FieldSpec{Name: "toy.delta", Kind: dissect.KindInt}
	toyRate   = &dissect.FieldSpec{Name: "toy.rate", Kind: dissect.KindFloat}
	toyWait   = &dissect.FieldSpec{Name: "toy.wait", Kind: dissect.KindUint, Unit: "ms"}
	toyBody   = &dissect.FieldSpec{Name: "toy.body", Kind: dissect.KindBytes}
	toyName   = &dissect.FieldSpec{Name: "toy.name", Kind: dissect.KindText}
	toyItem   = &dissect.FieldSpec{Name: "toy.item", Kind: dissect.KindUint}
	toyAbsent = &dissect.FieldSpec{Name: "toy.absent", Kind: dissect.KindUint}
	toyRule   = &machine.Rule{ID: "false-ack", Severity: machine.Error}
	toyOther  = &machine.Rule{ID: "rtt-spike", Severity: machine.Note}
	toyEvent  = machine.EventProtocol + 1

	toy = &dissect.Protocol{
		Name: "toy", Title: "Toy",
		Fields: []*dissect.FieldSpec{
			toyHeader, toySeq, toyAck, toyBits, toyKind, toyFlag, toyDelta, toyRate, toyWait,
			toyBody, toyName, toyItem, toyAbsent,
		},
		Rules:      []*machine.Rule{toyRule, toyOther},
		EventNames: map[machine.EventKind]string{toyEvent: "handshake"},
	}
	other = &dissect.Protocol{
		Name: "other", Title: "Other",
		Fields: []*dissect.FieldSpec{{Name: "other.x", Kind: dissect.KindUint}},
	}
)

func testTable() *filter.Table {
	return fields.NewTable(fields.Options{
		Registry: dissect.NewRegistry(toy, other),
		Specs:    []*dissect.FieldSpec{{Name: "chat.text", Kind: dissect.KindText}},
	})
}

type figures struct{}

func (figures) Facts() machine.Facts { return machine.Facts{Vantage: machine.VantageB} }

func (figures) RTT(s machine.Side) time.Duration {
	return [...]time.Duration{40 * time.Millisecond, 90 * time.Millisecond}[s]
}

func (figures) Loss(s machine.Side) float64 { return [...]float64{0.02, -1}[s] }

func (figures) Sent(s machine.Side) (uint64, bool) { return [...]uint64{100, 7}[s], true }

// testRecord returns a packet with a value for every field: VLAN 7,
// 10.0.0.5:7777 to 192.168.1.9:40000.
func testRecord(t testing.TB) *filter.Record {
	t.Helper()
	data, err := hex.DecodeString("0a0b0c0d0e0f" + "020304050607" + "8100" + "6007" + "0800" +
		"4500" + "0024" + "beef" + "4000" + "40" + "11" + "0000" + "0a000005" + "c0a80109" +
		"1e61" + "9c40" + "0010" + "0000" + "0102030405060708")
	if err != nil {
		t.Fatal(err)
	}
	frame := &capture.Frame{
		Ref: machine.MakeRef(0, 42), At: 1700000000_500000000, Interface: 3, LinkType: 1,
		Length: 60, Data: data,
	}
	src, dst := netip.MustParseAddrPort("10.0.0.5:7777"), netip.MustParseAddrPort("192.168.1.9:40000")
	payload := data[len(data)-8:]
	return &filter.Record{
		Frame: frame,
		Packet: &capture.Packet{
			Ref: frame.Ref, At: frame.At, Transport: capture.UDP, Src: src, Dst: dst, Payload: payload,
			Length: 8, Layers: []capture.Layer{
				{Kind: capture.LayerEthernet, Offset: 0, Length: 14},
				{Kind: capture.LayerVLAN, Offset: 14, Length: 4},
				{Kind: capture.LayerIPv4, Offset: 18, Length: 20},
				{Kind: capture.LayerUDP, Offset: 38, Length: 8},
			},
		},
		Start: frame.At - machine.Instant(2500*time.Millisecond), Previous: frame.At - machine.Instant(time.Millisecond),
		File: "match.pcap",
		Src:  src, Dst: dst, Transport: capture.UDP,
		Datagram: machine.Datagram{At: frame.At, Ref: frame.Ref, From: machine.A, Bytes: payload, Length: 8},
		Flow:     2, Session: 1, Protocol: toy, Dialect: "small", Knowledge: figures{},
		Events: []machine.Event{
			{
				Kind: machine.EventAcked, Side: machine.A, Certainty: machine.Certain, Bit: 3, Sequence: 65534, Sequence64: 131070,
				By: machine.MakeRef(0, 40), RTT: 31e6,
			},
			{
				Kind: machine.EventAcked, Side: machine.A, Certainty: machine.Likely, Bit: 4, Sequence: 65533,
				Sequence64: 131069, RTT: -1,
			},
			{Kind: toyEvent, Side: machine.B, Sequence: 1},
		},
		Anomalies: []machine.Anomaly{{Rule: toyRule, Side: machine.B, Certainty: machine.Certain}},
		Decode: func(*filter.Record) *dissect.Dissection {
			return &dissect.Dissection{Fields: []dissect.Field{
				{Spec: toyHeader},
				{Spec: toySeq, Uint: 902, Bits: 16},
				{Spec: toyAck, Uint: 900, Bits: 16},
				{Spec: toyBits, Uint: 0x1f, Bits: 32},
				{Spec: toyKind, Uint: 1},
				{Spec: toyFlag, Uint: 0},
				{Spec: toyDelta, Uint: uint64(math.MaxUint64 - 4)},
				{Spec: toyRate, Uint: math.Float64bits(0.25)},
				{Spec: toyWait, Uint: 120},
				{Spec: toyBody, Bytes: []byte{1, 2, 3, 4, 0xfe}},
				{Spec: toyName, Bytes: []byte("Hello World")},
				{Spec: toyItem, Uint: 3},
				{Spec: toyItem, Uint: 5},
				{Spec: toyItem, Uint: 8},
			}}
		},
	}
}

package filter

import (
	"encoding/hex"
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// A toy protocol with a field of every kind.
var (
	toyHeader = &dissect.FieldSpec{Name: "toy.header", Kind: dissect.KindGroup, Doc: "The header."}
	toySeq    = &dissect.FieldSpec{Name: "toy.sequence", Kind: dissect.KindUint, Doc: "Sequence number."}
	toyAck    = &dissect.FieldSpec{Name: "toy.ack", Kind: dissect.KindUint}
	toyBits   = &dissect.FieldSpec{Name: "toy.ack_bits", Kind: dissect.KindUint, Hex: true}
	toyKind   = &dissect.FieldSpec{Name: "toy.kind", Kind: dissect.KindUint, Enum: map[uint64]string{0: "regular", 1: "fragment"}}
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
		Fields:     []*dissect.FieldSpec{toyHeader, toySeq, toyAck, toyBits, toyKind, toyFlag, toyDelta, toyRate, toyWait, toyBody, toyName, toyItem, toyAbsent},
		Rules:      []*machine.Rule{toyRule, toyOther},
		EventNames: map[machine.EventKind]string{toyEvent: "handshake"},
	}
	other = &dissect.Protocol{Name: "other", Title: "Other", Fields: []*dissect.FieldSpec{{Name: "other.x", Kind: dissect.KindUint}}}
)

func testTable() *Table {
	return NewTable(Options{Registry: dissect.NewRegistry(toy, other), Specs: []*dissect.FieldSpec{{Name: "chat.text", Kind: dissect.KindText}}})
}

type figures struct{}

func (figures) Facts() machine.Facts { return machine.Facts{Vantage: machine.VantageB} }

func (figures) Summary(s machine.Side) (machine.Summary, bool) {
	if s == machine.A {
		return machine.Summary{RTT: 40 * time.Millisecond, Loss: 0.02, Packets: 100}, true
	}
	return machine.Summary{RTT: 90 * time.Millisecond, Loss: -1, Packets: 7}, true
}

// testRecord is one packet with a value for everything: VLAN 7, 10.0.0.5:7777
// to 192.168.1.9:40000.
func testRecord(t testing.TB) *Record {
	t.Helper()
	data, err := hex.DecodeString("0a0b0c0d0e0f" + "020304050607" + "8100" + "6007" + "0800" +
		"4500" + "0024" + "beef" + "4000" + "40" + "11" + "0000" + "0a000005" + "c0a80109" +
		"1e61" + "9c40" + "0010" + "0000" + "0102030405060708")
	if err != nil {
		t.Fatal(err)
	}
	frame := &capture.Frame{Ref: machine.MakeRef(0, 42), At: 1700000000_500000000, Interface: 3, LinkType: 1, Length: 60, Data: data}
	src, dst := netip.MustParseAddrPort("10.0.0.5:7777"), netip.MustParseAddrPort("192.168.1.9:40000")
	payload := data[len(data)-8:]
	return &Record{
		Frame: frame,
		Packet: &capture.Packet{Ref: frame.Ref, At: frame.At, Transport: capture.UDP, Src: src, Dst: dst, Payload: payload, Length: 8, Layers: []capture.Layer{
			{Kind: capture.LayerEthernet, Offset: 0, Length: 14},
			{Kind: capture.LayerVLAN, Offset: 14, Length: 4},
			{Kind: capture.LayerIPv4, Offset: 18, Length: 20},
			{Kind: capture.LayerUDP, Offset: 38, Length: 8},
		}},
		Start: frame.At - machine.Instant(2500*time.Millisecond), Previous: frame.At - machine.Instant(time.Millisecond), File: "match.pcap",
		Src: src, Dst: dst, Transport: capture.UDP,
		Datagram: machine.Datagram{At: frame.At, Ref: frame.Ref, From: machine.A, Bytes: payload, Length: 8},
		Flow:     2, Session: 1, Protocol: toy, Dialect: "small", Knowledge: figures{},
		Events: []machine.Event{
			{Kind: machine.EventAcked, Side: machine.A, Certainty: machine.Certain, Bit: 3, Sequence: 65534, Sequence64: 131070, By: machine.MakeRef(0, 40), RTT: 31e6},
			{Kind: machine.EventAcked, Side: machine.A, Certainty: machine.Likely, Bit: 4, Sequence: 65533, Sequence64: 131069, RTT: -1},
			{Kind: toyEvent, Side: machine.B, Sequence: 1},
		},
		Anomalies: []machine.Anomaly{{Rule: toyRule, Side: machine.B, Certainty: machine.Certain}},
		Decode: func(*Record) *dissect.Dissection {
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

var matching = []struct {
	filter string
	want   bool
}{
	{"", true},
	{"  ", true},
	// Existence.
	{"toy", true},
	{"other", false},
	{"udp", true},
	{"tcp", false},
	{"frame", true},
	{"eth", true},
	{"vlan", true},
	{"ip", true},
	{"ipv6", false},
	{"toy.header", true},
	{"toy.flag", true}, // false, but there
	{"toy.absent", false},
	{"other.x", false},
	{"!toy.absent", true},
	{"not toy.sequence", false},
	{"malformed", false},
	{"rel", true},
	{"finding", true},
	{"chat.text", false},
	// Numbers and every spelling of the operators.
	{"toy.sequence == 902", true},
	{"toy.sequence eq 902", true},
	{"toy.sequence EQ 0x386", true},
	{"toy.sequence == 0b1110000110", true},
	{"toy.sequence == 01606", true}, // C's octal, as in Wireshark
	{"toy.sequence == 903", false},
	{"toy.sequence != 902", false},
	{"toy.sequence ne 903", true},
	{"toy.sequence > 901", true},
	{"toy.sequence gt 902", false},
	{"toy.sequence >= 902", true},
	{"toy.sequence ge 903", false},
	{"toy.sequence < 903", true},
	{"toy.sequence lt 902", false},
	{"toy.sequence <= 902", true},
	{"toy.sequence le 901", false},
	{"902 == toy.sequence", true},
	{"900 < toy.sequence", true},
	{"900 > toy.sequence", false},
	{"900 < toy.sequence < 910", true},
	{"900 < toy.sequence <= 901", false},
	{"toy.sequence==902&&toy.ack==900", true},
	{"toy.sequence > 18446744073709551615", false},
	{"toy.delta == -5", true},
	{"toy.delta < 0", true},
	{"toy.delta > -6", true},
	{"toy.delta < -9223372036854775808", false},
	{"abs(toy.delta) == 5", true},
	{"toy.rate == 0.25", true},
	{"toy.rate < 25.5%", true},
	{"toy.rate == 25%", true},
	{"toy.rate > 1e-3", true},
	{"toy.rate > .2", true},
	{"toy.rate >= 1", false},
	{"toy.flag == false", true},
	{"toy.flag == 0", true},
	{"toy.flag == True", false},
	{"toy.flag != true", true},
	// Words of enumerations.
	{"toy.kind == fragment", true},
	{`toy.kind == "Fragment"`, true},
	{"toy.kind == 1", true},
	{"toy.kind != regular", true},
	{"toy.kind in {regular, fragment}", true},
	// Absent fields: every comparison is false.
	{"toy.absent == 1", false},
	{"toy.absent != 1", false},
	{"!(toy.absent == 1)", true},
	{"toy.absent in {1, 2}", false},
	{"toy.absent not in {1, 2}", true},
	{"toy.sequence > toy.absent", false},
	{"other.x != 5", false},
	{"count(toy.absent) == 0", false}, // no value, no argument: as in Wireshark
	// Several values.
	{"toy.item == 5", true},
	{"toy.item != 5", false},
	{"toy.item != 6", true},
	{"toy.item ~= 5", true},
	{"toy.item !== 5", true},
	{"toy.item any_ne 5", true},
	{"toy.item all_ne 5", false},
	{"toy.item === 5", false},
	{"toy.item all_eq 5", false},
	{"any toy.item == 8", true},
	{"all toy.item == 8", false},
	{"all toy.item > 2", true},
	{"all toy.item > 3", false},
	{"any toy.item != 5", true},
	{"all toy.item != 4", true},
	{"toy.item > 7", true},
	{"toy.item > 8", false},
	{"toy.item in {1, 5}", true},
	{"all toy.item in {1..8}", true},
	{"all toy.item in {1..7}", false},
	{"toy.item not in {4, 6..7}", true},
	{"count(toy.item) == 3", true},
	{"count(toy.sequence) == 1", true},
	{"udp.port == 7777", true},
	{"udp.port == 40000", true},
	{"udp.port != 7777", false},
	{"udp.port != 53", true},
	{"!(udp.port == 53)", true},
	{"udp.port === 7777", false},
	{"udp.port > 30000 and udp.port < 10000", true}, // different values, as in Wireshark
	// Sets.
	{"toy.sequence in {902}", true},
	{"toy.sequence in {1, 2, 900..910}", true},
	{"toy.sequence in {1 2 902}", true},
	{"toy.sequence in {1..901, 903..910}", false},
	{"toy.sequence not in {1..901}", true},
	{"!(toy.sequence in {902})", false},
	{"toy.sequence in {1,3,5,7,9,11,13,15,17,19,902}", true},
	{"toy.sequence in {1,3,5,7,9,11,13,15,17,19,903}", false},
	{"toy.delta in {-10..-1}", true},
	{"toy.rate in {0.2..0.3}", true},
	{"ip.src in {10.0.0.0/8, 172.16.0.0/12}", true},
	{"ip.addr in {192.168.1.1..192.168.1.10}", true},
	{"ip.dst in {10.0.0.0/8}", false},
	{`toy.name in {"Bye", "Hello World"}`, true},
	{`toy.body[0:1] in {00, 01..05}`, true},
	{"toy.wait in {100ms..200ms}", true},
	// Units.
	{"toy.wait == 120ms", true},
	{"toy.wait >= 0.12s", true},
	{"toy.wait == 120000us", true},
	{"toy.wait == 120", true},
	{"toy.wait < 1min", true},
	{"frame.len < 1kB", true},
	{"frame.len > 0.05kB", true},
	{"frame.len < 1KiB", true},
	{"frame.len == 60B", true},
	{"frame.time_relative == 2.5", true},
	{"frame.time_relative == 2500ms", true},
	{"frame.time_relative > 2s", true},
	{"frame.time_delta == 1ms", true},
	{"frame.time_delta >= 0.001", true},
	{"frame.time_delta > 1000us", false},
	{"frame.time_delta > -1s", true},
	{"flow.rtt > 80ms", true},
	{"flow.rtt_a > 80ms", false},
	{"flow.rtt_b > 80ms", true},
	{"all flow.rtt > 80ms", false},
	{"flow.rtt != 40ms", false},
	{"flow.rtt == 0.04", true},
	{"flow.loss == 2%", true},
	{"flow.loss_b", false}, // unknown is no value
	{"flow.packets_b == 7", true},
	// Times.
	{"frame.time_epoch == 1700000000.5", true},
	{"frame.time_epoch > 1700000000.499999999", true},
	{"frame.time_epoch < 1700000000", false},
	{`frame.time == "2023-11-14 22:13:20.5"`, true},
	{`frame.time >= "2023-11-14T22:13:20Z"`, true},
	{`frame.time < "2023-11-14"`, false},
	{`frame.time >= "2023-11-14T23:13:20+01:00"`, true},
	{`frame.time >= "Nov 14, 2023 22:13"`, true},
	// Addresses.
	{"ip.src == 10.0.0.5", true},
	{"ip.dst == 10.0.0.5", false},
	{"ip.addr == 10.0.0.5", true},
	{"ip.addr != 10.0.0.5", false},
	{"ip.addr == 10.0.0.0/24", true},
	{"ip.addr == 192.168.0.0/16", true},
	{"ip.addr != 172.16.0.0/12", true},
	{"ip.src < 10.0.0.6", true},
	{"ip.src >= 10.0.0.6", false},
	{"ip.src[0] == 0a", true},
	{"ip.src[0:2] == 0a:00", true},
	{"ip.src == ip.dst", false},
	{"ip.src != ip.dst", true},
	{"ipv6.src == fe80::1", false},
	{"ipv6.addr != ::1", false}, // no IPv6 here
	{"eth.dst == 0a:0b:0c:0d:0e:0f", true},
	{"eth.addr == 02-03-04-05-06-07", true},
	{"eth.src[0:3] == 02:03:04", true},
	{"eth.type == 0x8100", true},
	{"vlan.id == 7", true},
	{"vlan.priority == 3", true},
	{"ip.ttl == 64 && ip.proto == 17", true},
	{"ip.id == 0xbeef", true},
	{"ip.len == 36", true},
	{"ip.flags.df == 1", true},
	{"ip.flags.mf == true", false},
	{"ip.hdr_len == 20", true},
	{"udp.length == 16", true},
	{"udp.srcport < udp.dstport", true},
	{"udp.dstport < udp.srcport", false},
	{"udp.srcport == 7777 || udp.dstport == 7777", true},
	{"frame.number == 42", true},
	{"frame.cap_len == 54", true},
	{"frame.interface_id == 3", true},
	{`frame.file contains "match"`, true},
	// Bytes and text.
	{"toy.body == 01:02:03:04:fe", true},
	{"toy.body == 01-02-03-04-fe", true},
	{"toy.body == 0102.0304.fe", true},
	{"toy.body == 01020304fe", true},
	{"toy.body != 01:02", true},
	{"toy.body contains 03:04", true},
	{"toy.body contains 04:03", false},
	{`toy.body contains "\x03\x04"`, true},
	{`toy.body contains "\003\004"`, true},
	{"toy.body[0] == 1", true},
	{"toy.body[4] == fe", true},
	{"toy.body[-1] == 0xfe", true},
	{"toy.body[1:2] == 02:03", true},
	{"toy.body[1-2] == 02:03", true},
	{"toy.body[:2] == 01:02", true},
	{"toy.body[3:] == 04:fe", true},
	{"toy.body[-2:] == 04:fe", true},
	{"toy.body[-2:1] == 04", true},
	{"toy.body[0,4] == 01:fe", true},
	{"toy.body[0:2,-1] == 01:02:fe", true},
	{"toy.body[1:2][1] == 03", true},
	{"toy.body[9] == 1", false}, // outside: as in tshark an empty byte string
	{"toy.body[9] != 1", true},
	{"toy.body[9] < 00", true},
	{"toy.body[4:2] != 1", true}, // partly outside: the same
	{"toy.body[9] == toy.body[10]", true},
	{"toy.body[9] matches \"^$\"", true},
	{"chat.text[9] != 1", false},
	{"toy.body[4,9] == fe", true},
	{"toy.body[9]", false}, // but it is not there
	{"toy.body[3:3]", false},
	{"toy.body[1:2][2]", false},
	{"!toy.body[9]", true},
	{"count(toy.body[9]) == 1", false},
	{"len(toy.body[9]) == 0", true},
	{"toy.body > 01:02", true},
	{"toy.body < 01:02:04", false}, // longer, so greater: as in tshark
	{"toy.body < 01:02:03:05:00", true},
	{"udp.payload[0:2] == 01:02", true},
	{"udp.payload == frame[46:]", true},
	{"frame contains udp.payload", true},
	{"frame[0:6] == eth.dst", true},
	{"udp contains 01:02", true},
	{"udp[0:2] == 1e:61", true},
	{"udp[8:3] == 01:02:03", true},
	{`toy.name == "Hello World"`, true},
	{`toy.name contains "World"`, true},
	{`toy.name contains World`, true},
	{`toy.name contains "world"`, false},
	{`toy.name matches "^hello.*d$"`, true}, // case ignored, as in Wireshark
	{`toy.name ~ "(?-i:hello)"`, false},
	{`toy.name matches r"\bworld\b"`, true},
	{`lower(toy.name) == "hello world"`, true},
	{`upper(toy.name) contains "WORLD"`, true},
	{`len(toy.name) == 11`, true},
	{`len(toy.body) > 4`, true},
	{`toy.name[0:5] == "Hello"`, true},
	{`string(toy.sequence) matches "^9"`, true},
	{`string(ip.src) contains "0.0.5"`, true},
	{`toy.body matches "\\x03"`, true},
	// Bits.
	{"toy.ack_bits & 1", true},
	{"toy.ack_bits & 0x20", false},
	{"toy.ack_bits & 0x10 == 16", true},
	{"toy.ack_bits & 0xff == 0x1f", true},
	{"toy.ack_bits & 0x3 != 0", true},
	{"toy.sequence & 1 == 0", true},
	{"frame.len == 'A'", false},
	{"toy.body[0:1] == '\\x01'", true},
	// Flow, events, findings.
	{"flow == 2", true},
	{"flow == 1", false},
	{"flow == 2 && rel.acked", true},
	{"flow.side == a", true},
	{`flow.side == "b"`, false},
	{"flow.protocol == toy", true},
	{"flow.protocol == other", false},
	{`flow.protocol == "toy"`, true},
	{`flow.dialect == "small"`, true},
	{"flow.vantage == b", true},
	{"rel.acked", true},
	{"rel.acked == 65533", true},
	{"rel.acked == 1", false},
	{"rel.lost", false},
	{"rel.dup", false},
	{"rel.duplicate", false},
	{"rel.handshake", true},
	{`rel.event == "acked"`, true},
	{"rel.event != acked", false},
	{"rel.event == handshake", true},
	{"rel.certainty == likely", true},
	{"all rel.certainty == certain", false},
	{"rel.side == b", true},
	{"rel.sequence64 > 131000", true},
	{"rel.bit == 3", true},
	{"rel.by_frame == 40", true},
	{"rel.rtt > 30ms", true},
	{"rel.rtt > 32ms", false},
	{`finding.rule == "false-ack"`, true},
	{"finding.rule == false-ack", true},
	{"finding.rule != rtt-spike", true},
	{"finding.severity == error", true},
	{`finding.severity in {"warn", "error"}`, true},
	{"finding.side == a", false},
	// Logic: and binds tighter than or.
	{"toy || other && tcp", true},
	{"(toy || other) && tcp", false},
	{"toy and not tcp", true},
	{"not tcp and other", false},
	{"not (tcp and other)", true},
	{"toy xor udp", false},
	{"toy ^^ tcp", true},
	{"! ! toy", true},
	{"((((toy))))", true},
	{"toy&&!tcp||other", true},
	{"toy AND udp", true},
}

func TestMatch(t *testing.T) {
	table, r := testTable(), testRecord(t)
	for _, c := range matching {
		f, err := table.Compile(c.filter)
		if err != nil {
			t.Errorf("%s: %v", c.filter, err)
			continue
		}
		r.Reset()
		if got := f.Match(r); got != c.want {
			t.Errorf("%s: %v, expected %v", c.filter, got, c.want)
		}
		if f.String() != c.filter {
			t.Errorf("%q says that it is %q", c.filter, f.String())
		}
	}
	if len(matching) < 200 {
		t.Errorf("%d filters, expected at least 200", len(matching))
	}
}

func TestErrors(t *testing.T) {
	table := testTable()
	for _, c := range []struct {
		filter  string
		column  int
		message string // part of it, suggestion included
	}{
		{"toy.sequnce == 1", 1, "did you mean toy.sequence?"},
		{"toy.sequnce", 1, "did you mean toy.sequence?"},
		{"sequence > 5", 1, "did you mean toy.sequence?"},
		{"tpy.ack_bits", 1, "did you mean toy.ack_bits?"},
		{"udp.prot == 5", 1, "did you mean udp.port?"},
		{"nonsense_at_all", 1, `no field is named "nonsense_at_all"`},
		{"toy.sequence = 5", 14, "did you mean ==?"},
		{"toy | udp", 5, "did you mean ||?"},
		{"toy.sequence <> 5", 14, "did you mean !=?"},
		{"toy.sequence == ", 17, "found the end"},
		{"toy.sequence ==", 16, "found the end"},
		{"== 5", 1, `found the operator "=="`},
		{"toy &&", 7, "found the end"},
		{"toy udp", 5, "expected an operator"},
		{"(toy", 5, "expected )"},
		{"toy)", 4, ") without a ("},
		{"()", 2, "expected a field"},
		{"!", 2, "found the end"},
		{"toy.sequence == abc", 17, "expected an integer"},
		{"toy.sequence == -1", 17, "never negative"},
		{"toy.sequence == 1.5", 17, "expected an integer"},
		{"toy.sequence == 99999999999999999999", 17, "expected an integer"},
		{`toy.sequence == "5"`, 17, "expected an integer"},
		{"toy.sequence == 80ms", 17, "without ms"},
		{"toy.wait == 1kB", 13, "is in ms"},
		{"toy.wait == 100us", 13, "whole number of ms"},
		{"toy.kind == fragmnt", 13, "did you mean fragment?"},
		{"toy.flag == maybe", 13, "expected true or false"},
		{"toy.flag > 0", 12, "compare it with == or !="},
		{"toy.header == 1", 1, "has no value"},
		{"toy == 1", 1, "has no value"},
		{"toy.sequence == toy.header", 17, "has no value"},
		{"toy.sequence contains 5", 14, "string(toy.sequence)"},
		{"toy.sequence matches \"5\"", 14, "matches is for bytes and text"},
		{`toy.name matches "("`, 18, "not a regular expression: missing closing )"},
		{"toy.name matches abc", 18, `did you mean "abc"?`},
		{"toy.name matches toy.name", 18, "in quotes"},
		{"toy.name == 'ab'", 13, "holds one character"},
		{`toy.name == "abc`, 13, `closing "`},
		{`toy.name == "a\q"`, 15, "backslash"},
		{`toy.name == "a\xg1"`, 15, "hexadecimal"},
		{"toy.body == xy", 13, "expected bytes"},
		{"toy.body == 0a:", 13, "expected bytes"},
		{"toy.body[0:2 == 01:02", 9, "expected ]"},
		{"toy.body[x] == 1", 10, "found [x]"},
		{"toy.body[] == 1", 10, "expected [offset:length]"},
		{"toy.body[0:0] == 1", 10, "expected [offset:length]"},
		{"toy.body[3-1] == 1", 10, "expected [offset:length]"},
		{"toy.sequence[0] == 1", 13, "slices are of bytes"},
		{"toy.body ] == 1", 10, "] without a ["},
		{"ip.src == 300.1.1.1", 11, "expected an address"},
		{"ip.src == 10.0.0.0/40", 11, "expected an address"},
		{"ip.src > 10.0.0.0/8", 10, "network is compared with"},
		{"ip.src in {10.0.0.0/8..11.0.0.0/8}", 12, "two addresses of one family"},
		{"ip.src in {10.0.0.1..fe80::1}", 12, "two addresses of one family"},
		{"ip.src in {10.0.0.9..10.0.0.1}", 12, "is empty"},
		{"ip.src == toy.sequence", 8, "cannot be compared"},
		{"frame.time == 12:30", 15, "expected a time"},
		{`frame.time == "yesterday"`, 15, "expected a time"},
		{"frame.time_relative > 5kB", 23, "expected a duration"},
		{"flow.rtt > eighty", 12, "expected a duration"},
		{"toy.sequence in 5", 17, "expected {"},
		{"toy.sequence in {5", 19, "expected , or }"},
		{"toy.sequence in {}", 18, "expected a value"},
		{"toy.sequence in {9..5}", 18, "did you mean 5..9?"},
		{"toy.sequence in {1..}", 21, "expected the end of the range"},
		{"toy in {1}", 1, "has no value"},
		{"{1}", 1, "after in only"},
		{"5 == 5", 1, "expected a field"},
		{"5", 1, "expected a field"},
		{`"text"`, 1, "expected a field"},
		{"toy.sequnce == abc", 1, "did you mean toy.sequence?"},
		{"abs(toy.name) == 1", 5, "abs is for numbers"},
		{"len(toy.sequence) == 1", 5, "len is for bytes and text"},
		{"upper(toy.body) == 1", 7, "upper is for text"},
		{"lenn(toy.name) == 1", 1, "did you mean len?"},
		{"len() == 1", 1, "takes 1 argument"},
		{"len(toy.name, toy.body) == 1", 1, "takes 1 argument"},
		{"len(toy.name == 1", 14, "expected , or )"},
		{"count(toy) == 1", 7, "fields with values"},
		{"toy.name & 1", 1, "unsigned integers"},
		{"toy.ack_bits & toy.ack == 1", 16, "expected a number after &"},
		{"any toy.item", 13, "expected a comparison after any"},
		{"rel.event == akced", 14, "did you mean acked?"},
		{"finding.rule == false-akc", 17, "did you mean false-ack?"},
		{`flow.side == "c"`, 14, "one of a, b"},
		{"toy.sequence - 5 == 1", 14, "subtraction"},
		{"toy.sequence == 5;", 18, "does not belong"},
		{"toy.sequence == 5 §", 19, "expected an operator"},
		{"ü.x == 5", 1, "no field is named"},
		{`toy.name == toy.nam`, 13, ""},
	} {
		_, err := table.Compile(c.filter)
		var e *Error
		if c.message == "" {
			if err != nil {
				t.Errorf("%s: %v", c.filter, err)
			}
			continue
		}
		if !errors.As(err, &e) {
			t.Errorf("%s: compiled, expected an error with %q", c.filter, c.message)
			continue
		}
		if e.Column() != c.column || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s:\n%s\n%v\nexpected column %d and %q", c.filter, e.Pointer(), err, c.column, c.message)
		}
	}
	deep := strings.Repeat("(", 10000) + "toy" + strings.Repeat(")", 10000)
	for _, bad := range []string{deep, strings.Repeat("!", 10000) + "toy", strings.Repeat("len(", 1000), strings.Repeat("x", maxText+1)} {
		if _, err := table.Compile(bad); err == nil {
			t.Errorf("a filter of %d bytes compiled", len(bad))
		}
	}
}

func TestPointer(t *testing.T) {
	_, err := testTable().Compile("udp && toy.näme == 5")
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal("no *Error")
	}
	if want := "udp && toy.näme == 5\n       ^^^^^^^^"; e.Pointer() != want {
		t.Errorf("got\n%s\nexpected\n%s", e.Pointer(), want)
	}
}

// A filter decodes only for fields of the packet's own protocol, and says what
// it needs.
func TestNeeds(t *testing.T) {
	table := testTable()
	for _, c := range []struct {
		filter string
		needs  Needs
		decode bool
	}{
		{"", 0, false},
		{"udp.port == 7777 && ip.src == 10.0.0.5 && frame.len > 5", 0, false},
		{"toy", NeedFlow, false},
		{"flow == 2", NeedFlow, false},
		{"rel.acked", NeedFlow | NeedEvents, false},
		{"finding.rule == false-ack", NeedFlow | NeedFindings, false},
		{"flow.rtt > 80ms", NeedFlow | NeedState, false},
		{"toy.sequence > 5", NeedFlow | NeedFields, true},
		{"other.x == 5", NeedFlow | NeedFields, false},
		{"udp.port == 53 && toy.sequence > 5", NeedFlow | NeedFields, false},
		{"udp.port == 7777 && toy.sequence > 5 && toy.ack > 5", NeedFlow | NeedFields, true},
	} {
		f, err := table.Compile(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		if f.Needs() != c.needs {
			t.Errorf("%s needs %b, expected %b", c.filter, f.Needs(), c.needs)
		}
		r := testRecord(t)
		decode, n := r.Decode, 0
		r.Decode = func(r *Record) *dissect.Dissection { n++; return decode(r) }
		f.Match(r)
		if (n > 0) != c.decode || n > 1 {
			t.Errorf("%s: decoded %d times, expected %v", c.filter, n, c.decode)
		}
	}
}

func TestColumns(t *testing.T) {
	table, r := testTable(), testRecord(t)
	for name, want := range map[string]string{
		"frame.number": "42", "frame.time_epoch": "1700000000.500000000", "frame.time_relative": "2.500000000", "frame.time": "2023-11-14T22:13:20.500000000Z",
		"ip.src": "10.0.0.5", "ip.addr": "10.0.0.5|192.168.1.9", "udp.port": "7777|40000", "eth.dst": "0a:0b:0c:0d:0e:0f", "ip.id": "0xbeef", "ip.flags.df": "1",
		"toy.sequence": "902", "toy.ack_bits": "0x0000001f", "toy.kind": "1", "toy.delta": "-5", "toy.rate": "0.25", "toy.body": "01020304fe", "toy.name": "Hello World",
		"toy.item": "3|5|8", "toy.absent": "", "toy.header": "1", "tcp": "", "udp.payload": "0102030405060708", "flow": "2", "flow.side": "a", "rel.event": "acked|acked|handshake",
		"rel.acked": "65534|65533", "finding.rule": "false-ack", "flow.rtt": "0.040000000|0.090000000", "toy": "1", "rel.sequence64": "131070|131069|0",
	} {
		f, ok := table.Lookup(name)
		if !ok {
			t.Errorf("no field %s", name)
			continue
		}
		if got := string(f.Column().Append(nil, r, "|")); got != want {
			t.Errorf("%s: %q, expected %q", name, got, want)
		}
	}
}

// Every field is documented, and compiles alone.
func TestTable(t *testing.T) {
	table := NewTable(Options{})
	for _, f := range table.Fields() {
		if f.Doc == "" || !strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%s: its sentence is %q", f.Name, f.Doc)
		}
		if _, err := table.Compile(f.Name); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if f.Column() == nil {
			t.Errorf("%s has no column", f.Name)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	if testenv.Race {
		t.Skip("regular expressions take their memory from a pool, which the race detector disturbs")
	}
	table, r := testTable(), testRecord(t)
	d := r.Decode(r)
	r.Decode = func(*Record) *dissect.Dissection { return d }
	for _, c := range matching {
		f, err := table.Compile(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		f.Match(r)
		if n := testing.AllocsPerRun(50, func() { r.Reset(); f.Match(r) }); n != 0 {
			t.Errorf("%s: %v allocations", c.filter, n)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, c := range matching {
		f.Add(c.filter)
	}
	table, r := testTable(), testRecord(f)
	f.Fuzz(func(t *testing.T, text string) {
		x, err := table.Compile(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%q: %T", text, err)
			}
			if e.Offset < 0 || e.Offset > len(text) || e.Column() < 1 {
				t.Fatalf("%q: the error points at byte %d", text, e.Offset)
			}
			_ = e.Pointer()
			return
		}
		r.Reset()
		x.Match(r)
		if len(text) < 1000 {
			if y, err := table.Compile("!(" + text + ")"); strings.TrimSpace(text) != "" && (err != nil || y.Match(r) == x.Match(r)) {
				t.Fatalf("%q and its negation agree (%v)", text, err)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	table, r := testTable(), testRecord(b)
	d := r.Decode(r)
	r.Decode = func(*Record) *dissect.Dissection { return d }
	for _, text := range []string{
		"udp.port == 7777", "toy.sequence > 100", "toy.sequence > 100 && udp.port == 7777", "flow == 2 && rel.lost", "ip.addr == 192.168.1.0/24",
		"flow.rtt > 80ms", "toy.sequence in {1, 5, 900..910}", `finding.rule == "false-ack"`, "udp.payload[0:2] == 01:02",
	} {
		b.Run(strings.ReplaceAll(text, " ", ""), func(b *testing.B) {
			f, err := table.Compile(text)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				f.Match(r)
			}
		})
	}
}

// A datagram that was held is listed when its frame is gone: addresses, ports
// and payload are still known, headers are not.
func TestFrameGone(t *testing.T) {
	table, r := testTable(), testRecord(t)
	r.Frame, r.Packet = nil, nil
	for filter, want := range map[string]bool{
		"ip.addr == 10.0.0.5": true, "ip.src == 192.168.0.0/16": false, "ip.dst != 10.0.0.0/8": true, "ip.addr in {10.0.0.0/8}": true,
		"udp.port == 7777": true, "udp.payload[0] == 01": true, "frame.number == 42": true, "toy.sequence == 902": true,
		"frame.len": false, "ip.ttl": false, "eth.src": false, "frame": false, "ipv6.addr": false,
	} {
		f, err := table.Compile(filter)
		if err != nil {
			t.Fatal(err)
		}
		r.Reset()
		if got := f.Match(r); got != want {
			t.Errorf("%s: %v, expected %v", filter, got, want)
		}
	}
}

package filter_test

import (
	"testing"
	"time"
)

func TestColumns(t *testing.T) {
	table, r := testTable(), testRecord(t)
	for name, want := range map[string]string{
		"frame.number": "42", "frame.time_epoch": "1700000000.500000000", "frame.time_relative": "2.500000000",
		"frame.time": time.Unix(1700000000, 5e8).Format("Jan _2, 2006 15:04:05.000000000 MST"),
		"ip.src":     "10.0.0.5", "ip.addr": "10.0.0.5|192.168.1.9", "udp.port": "7777|40000", "eth.dst": "0a:0b:0c:0d:0e:0f",
		"ip.id": "0xbeef", "ip.flags.df": "1",
		"toy.sequence": "902", "toy.ack_bits": "0x0000001f", "toy.kind": "1", "toy.delta": "-5", "toy.rate": "0.25",
		"toy.body": "01020304fe", "toy.name": "Hello World",
		"toy.item": "3|5|8", "toy.absent": "", "toy.header": "1", "tcp": "", "udp.payload": "0102030405060708", "flow": "2",
		"flow.side": "a", "rel.event": "acked|acked|handshake",
		"rel.acked": "65534|65533", "finding.rule": "false-ack", "flow.rtt": "0.040000000|0.090000000", "toy": "1",
		"rel.sequence64": "131070|131069|0",
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

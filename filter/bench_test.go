package filter_test

import (
	"strings"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
)

func BenchmarkMatch(b *testing.B) {
	table, r := testTable(), testRecord(b)
	d := r.Decode(r)
	r.Decode = func(*filter.Record) *dissect.Dissection { return d }
	for _, text := range []string{
		"udp.port == 7777", "toy.sequence > 100", "toy.sequence > 100 && udp.port == 7777", "flow == 2 && rel.lost",
		"ip.addr == 192.168.1.0/24",
		"flow.rtt > 80ms", "rel.lost", "rel.event == acked", "frame.len - 8 > 40", "toy.sequence in {1, 5, 900..910}",
		`finding.rule == "false-ack"`, "udp.payload[0:2] == 01:02",
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

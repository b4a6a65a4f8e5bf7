package hostile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// profile is one way to decode a flow.
type profile struct {
	protocol *dissect.Protocol
	config   *dissect.Config
}

func profiles() (list []profile) {
	for _, p := range registry().Protocols() {
		for i := range p.Profiles {
			list = append(list, profile{p, p.Profiles[i].Config})
		}
	}
	return list
}

const (
	fuzzedLength = 1500 // most bytes of a datagram
	fuzzedCount  = 200  // most datagrams of a flow
)

// A script is a flow as the fuzzer writes it. It has the number of the profile
// and the position of the tap. For each datagram it has the side, the scale of
// time, the wait, the length and the bytes.
func appendDatagram(script []byte, d *machine.Datagram, wait time.Duration) []byte {
	scale := byte(0)
	for scale < 127 && wait>>(10+scale/8) > 255 {
		scale++
	}
	script = append(script, byte(d.From)|scale<<1, byte(wait>>(10+scale/8)))
	script = binary.LittleEndian.AppendUint16(script, uint16(len(d.Bytes)))
	return append(script, d.Bytes...)
}

func readScript(script []byte) (list []machine.Datagram) {
	at := machine.Instant(time.Hour)
	for len(script) >= 4 && len(list) < fuzzedCount {
		head, wait := script[0], time.Duration(script[1])<<(10+script[0]>>1/8)
		length := min(int(binary.LittleEndian.Uint16(script[2:])), fuzzedLength, len(script)-4)
		at = at.Add(wait)
		list = append(list, machine.Datagram{
			At: at, Ref: machine.MakeRef(0, uint64(len(list)+1)), From: machine.Side(head & 1), Bytes: script[4 : 4+length],
			Length: length,
		})
		script = script[4+length:]
	}
	return list
}

// scripts returns the first datagrams of real flows.
func scripts(t testing.TB) (list [][]byte) {
	known := profiles()
	for _, name := range []string{
		"reliable-loss10.client.pcap.gz", "plain-le-stalebug-loss98.client.pcap.gz", "article-chunks-loss25.client.pcap.gz",
		"article-connect.client.pcap.gz",
		"article-fragments-loss5.client.pcap.gz", "u210_loss10.client.pcapng.gz", "tpy_clean.client.pcap.gz",
		"yojimbo-testmsgs-loss10.client.pcap.gz",
	} {
		in, err := capture.Open([]string{testenv.Capture(t, name)}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var script []byte
		var last machine.Instant
		count := 0
		s := analyze.NewSession(analyze.Options{Registry: registry(), Sink: func(r *analyze.Record) {
			if r.Flow == nil || r.Flow.ID != 1 || r.Flow.Protocol == nil || len(r.Datagram.Bytes) == 0 || count == 60 {
				return
			}
			if script == nil {
				n := 0
				for i := range known {
					if known[i].protocol == r.Flow.Protocol && known[i].config.Dialect == r.Flow.Config().Dialect {
						n = i
					}
				}
				script, last = []byte{byte(n), 1}, r.Datagram.At
			}
			script = appendDatagram(script, &r.Datagram, r.Datagram.At.Sub(last))
			last = r.Datagram.At
			count++
		}})
		d := capture.NewDecoder(capture.DecodeOptions{})
		var f capture.Frame
		var p capture.Packet
		for {
			if err := in.Next(&f); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			d.Decode(&f, &p)
			s.Feed(&f, &p)
		}
		s.Finish()
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		if count == 0 {
			t.Fatalf("%s: no flow was read", name)
		}
		list = append(list, script)
	}
	return list
}

// FuzzMachines tracks and replays arbitrary datagrams at arbitrary times, with
// every profile, reference and position of the tap. It checks:
//
//   - nothing panics or hangs;
//   - memory is proportional to the input;
//   - a copy of a tracker continues like the tracker;
//   - a divergence names frames of the flow.
func FuzzMachines(f *testing.F) {
	for _, s := range scripts(f) {
		f.Add(s)
	}
	known := profiles()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 {
			return
		}
		x := known[int(data[0])%len(known)]
		c := *x.config
		c.Facts.Vantage = []machine.Vantage{
			machine.VantageUnknown, machine.VantageA, machine.VantageB,
			machine.VantageBoth,
		}[data[1]&3]
		c.Stream = data[1]&4 != 0 && len(x.protocol.Framings) > 0
		c.Ends = [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:30000"), netip.MustParseAddrPort("10.0.0.2:40000")}
		flow := readScript(data[2:])
		if x.protocol.NewTracker != nil {
			tracked(t, x.protocol.NewTracker(&c), flow)
		}
		if x.protocol.NewJudge != nil {
			judge(t, x.protocol, &c, flow)
		}
	})
}

// tracked runs a flow through a tracker. From the middle on it runs copies of
// the tracker too.
func tracked(t *testing.T, tr machine.Tracker, flow []machine.Datagram) {
	t.Helper()
	copies, heard := []machine.Tracker{tr}, []string{""}
	for i := range flow {
		if i == len(flow)/2 {
			copies = append(copies, tr.Clone())
			if p, ok := tr.(machine.Packer); ok {
				var scratch []byte
				copies = append(copies, p.Pack(&scratch).Unpack())
			}
			heard = make([]string, len(copies))
		}
		for k, c := range copies {
			var out machine.Effects
			c.Observe(&flow[i], &out)
			if n := len(out.Events) + len(out.Anomalies) + len(out.Messages); n > 1<<16 {
				t.Fatalf("one datagram made %d things", n)
			}
			heard[k] += fmt.Sprint(out.Events, len(out.Anomalies), len(out.Messages))
		}
	}
	var v machine.View
	for k, c := range copies {
		var out machine.Effects
		c.Finish(&out)
		heard[k] += fmt.Sprint(out.Events, len(out.Anomalies), len(out.Messages), c.Summary(machine.A),
			c.Summary(machine.B), c.Learned())
		c.Inspect(machine.A, &v)
		c.Inspect(machine.B, &v)
		if heard[k] != heard[0] {
			t.Fatalf("copy %d reports\n%s\nthe tracker itself\n%s", k, heard[k], heard[0])
		}
	}
	if size := tr.Size(); size > 4<<20+len(flow)*4*fuzzedLength {
		t.Fatalf("%d bytes of state after %d datagrams", size, len(flow))
	}
}

// judge replays a flow with every behaviour of its sides.
func judge(t *testing.T, p *dissect.Protocol, c *dissect.Config, flow []machine.Datagram) {
	t.Helper()
	var names [2][]string
	for s := range names {
		names[s], _ = p.BehavioursOf(c, machine.Side(s))
	}
	for k := range max(len(names[0]), len(names[1])) {
		if len(names[0]) == 0 || len(names[1]) == 0 {
			return
		}
		pair := [2]string{names[0][min(k, len(names[0])-1)], names[1][min(k, len(names[1])-1)]}
		j, err := p.NewJudge(c, pair)
		if err != nil {
			t.Fatalf("%v: %v", pair, err)
		}
		for i := range flow {
			j.Observe(&flow[i])
		}
		j.Finish()
		for s := range machine.Side(2) {
			o := j.Opinion(s)
			if o.Undecided > o.Compared || o.Compared > uint64(len(flow)) {
				t.Fatalf("%v %s: %d undecided of %d compared of %d", pair, s, o.Undecided, o.Compared, len(flow))
			}
			d := o.Divergence
			if d == nil {
				continue
			}
			if n := d.Ref.Frame(); n == 0 || n > uint64(len(flow)) || !slices.Contains(p.DivergenceRules, d.Rule) ||
				d.RestsOn == 0 || d.Expected == d.Got {
				t.Fatalf("%v %s: frame %d of %d: %s expected %q, got %q", pair, s, n, len(flow), d.Rule, d.Expected, d.Got)
			}
			for _, ref := range d.Frames {
				if n := ref.Frame(); n == 0 || n > uint64(len(flow)) {
					t.Fatalf("%v %s: frame %d: %s follows from frame %d of %d", pair, s, d.Ref.Frame(), d.Rule, n, len(flow))
				}
			}
		}
	}
}

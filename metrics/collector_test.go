package metrics

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cause"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// tallied is the test's own counts of the same records.
type tallied struct {
	events   map[string]float64
	rtts     []float64
	findings map[string]float64
}

// collect analyses captures, together with the given number of forged flows.
func collect(t *testing.T, forged int, names ...string) (*Collector, *analyze.Session, *tallied) {
	t.Helper()
	registry := dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
	c := New(registry, `v1 "quoted"\`+"\n", "go1")
	own := &tallied{events: map[string]float64{}, findings: map[string]float64{}}
	s := analyze.NewSession(analyze.Options{
		Registry: registry, Limits: analyze.LiveLimits,
		Sink: func(r *analyze.Record) {
			c.Take(r)
			for _, e := range r.Events {
				name := r.Flow.Protocol.EventNames[e.Kind]
				if name == "" {
					name = e.Kind.String()
				}
				own.events[fmt.Sprint(r.Flow.Protocol.Name, e.Side, name)]++
				if e.Kind == machine.EventAcked && e.RTT >= 0 {
					own.rtts = append(own.rtts, float64(e.RTT)/1e9)
				}
			}
		},
		Found: func(x *analyze.Finding) {
			c.Found(x)
			own.findings[x.Rule.ID]++
		},
	})
	d := capture.NewDecoder(capture.DecodeOptions{})
	var p capture.Packet
	for _, name := range names {
		in, err := capture.Open([]string{testenv.Capture(t, name)}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for f := (capture.Frame{}); ; {
			if err := in.Next(&f); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			d.Decode(&f, &p)
			s.Feed(&f, &p)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, last := s.Span()
	for i := range forged {
		b, err := capture.AppendUDP(nil, capture.Envelope{
			Src: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), 99),
			Dst: netip.MustParseAddrPort("203.0.113.9:7777"),
		}, fmt.Appendf(nil, "%d", i))
		if err != nil {
			t.Fatal(err)
		}
		f := capture.Frame{At: last, LinkType: capture.LinkRaw, Data: b, Length: len(b), Ref: machine.MakeRef(1, uint64(i+1))}
		d.Decode(&f, &p)
		s.Feed(&f, &p)
	}
	s.Finish()
	return c, s, own
}

var (
	headLine   = regexp.MustCompile(`^# (HELP|TYPE) ([a-z_]+) (.*)$`)
	sampleLine = regexp.MustCompile(`^([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\+Inf|-?[0-9][0-9.e+-]*)$`)
)

// parse parses an exposition by the grammar of the format, and compares it with
// Families. Each metric must occur once, with its labels in order, and no
// series twice.
func parse(t *testing.T, text string) map[string]float64 {
	t.Helper()
	if !strings.HasSuffix(text, "\n") {
		t.Error("the last line has no end")
	}
	types, labels := map[string]string{}, map[string]string{}
	for _, f := range Families() {
		types[f.Name], labels[f.Name] = f.Type, strings.Join(f.Labels, ",")
	}
	series, family, seen := map[string]float64{}, "", map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := headLine.FindStringSubmatch(line); m != nil {
			if m[1] == "HELP" {
				if family = m[2]; seen[family] || types[family] == "" {
					t.Errorf("%s stands there twice, or is in no list", family)
				}
				seen[family] = true
			} else if m[2] != family || m[3] != types[family] {
				t.Errorf("%q below the help of %s, a %s", line, family, types[family])
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%q is no sample", line)
		}
		base := m[1]
		if types[family] == "histogram" {
			base = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(base, "_bucket"), "_sum"), "_count")
		}
		var names []string
		for _, l := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" {
				names = append(names, l[1])
			}
		}
		if base != family || strings.Join(names, ",") != labels[family] {
			t.Errorf("%q below the help of %s, whose labels are %s", line, family, labels[family])
		}
		if _, ok := series[m[1]+m[2]]; ok {
			t.Errorf("%s%s twice", m[1], m[2])
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		series[m[1]+m[2]] = v
	}
	for name := range types {
		if !seen[name] {
			t.Errorf("%s is in the list and not exposed", name)
		}
	}
	return series
}

var all = Capture{
	Interfaces: []Interface{{Name: "eth0", Frames: 3, Freezes: 2, Statistics: capture.Statistics{
		FilterAccepted: 10, OSDropped: 7, Dropped: 1, Known: capture.KnownFilterAccepted | capture.KnownOSDropped |
			capture.KnownDropped,
	}}, {Name: "any", Statistics: capture.Statistics{Known: capture.KnownFilterAccepted | capture.KnownOSDropped}}},
	Unsaved: 4, Fragments: capture.FragmentStats{Fragments: 9, Reassembled: 2, Expired: 1},
	Process: Process{Resident: 1 << 20, CPUSeconds: 1.5, Started: 1.7e9},
}

var names = []string{
	"reliable-loss10.client.pcap.gz", "u210_loss10.client.pcapng.gz", "tpy_clean.client.pcap.gz",
	"linktype-qinq.pcap.gz",
}

// TestCommonCause holds that the causes of one kind share a series, and that no series holds an
// address.
func TestCommonCause(t *testing.T) {
	c, s, _ := collect(t, 0, names[0])
	state := all
	before := parse(t, string(c.Append(nil, s, analyze.LiveLimits, &state)))
	if n := before["ackscope_common_cause_compared_flows"]; n != 0 {
		t.Errorf("%v flows before the first comparison, expected 0", n)
	}
	state.Cause = &cause.Report{Flows: 40, Verdicts: []cause.Verdict{
		{Trouble: cause.Stall, Kind: cause.Server, Group: "192.0.2.1:7777", Certainty: machine.Likely, Flows: 30},
		{Trouble: cause.Stall, Kind: cause.Server, Group: "192.0.2.2:7777", Certainty: machine.Likely, Flows: 4},
		{Trouble: cause.Loss, Kind: cause.Prefix, Group: "203.0.113.0/24", Certainty: machine.Possible, Flows: 9},
	}}
	text := string(c.Append(nil, s, analyze.LiveLimits, &state))
	got := parse(t, text)
	for series, want := range map[string]float64{
		`ackscope_common_cause_flows{trouble="stall",kind="server",certainty="likely"}`:  30,
		`ackscope_common_cause_flows{trouble="loss",kind="prefix",certainty="possible"}`: 9,
		`ackscope_common_cause_compared_flows`:                                           40,
	} {
		if v, ok := got[series]; !ok || v != want {
			t.Errorf("%s is %v (%v), expected %v", series, v, ok, want)
		}
	}
	if len(got) != len(before)+2 {
		t.Errorf("%d series more than without a cause, expected 2", len(got)-len(before))
	}
	if strings.Contains(text, "192.0.2") || strings.Contains(text, "203.0.113") {
		t.Error("a label holds an address")
	}
}

func TestFigures(t *testing.T) {
	c, s, own := collect(t, 0, names...)
	got := parse(t, string(c.Append(nil, s, analyze.LiveLimits, &all)))
	want := func(series string, v float64) {
		t.Helper()
		if is, ok := got[series]; !ok || is != v {
			t.Errorf("%s is %v (%v), expected %v", series, is, ok, v)
		}
	}
	want(`ackscope_build_info{version="v1 \"quoted\"\\\n",goversion="go1"}`, 1)
	want(`ackscope_capture_dropped_packets_total{interface="eth0",where="ring"}`, 7)
	want(`ackscope_capture_dropped_packets_total{interface="eth0",where="interface"}`, 1)
	if _, ok := got[`ackscope_capture_dropped_packets_total{interface="any",where="interface"}`]; ok {
		t.Error("what is not known of an interface is told")
	}
	want(`ackscope_capture_ring_freezes_total{interface="eth0"}`, 2)
	want(`ackscope_capture_unsaved_frames_total`, 4)
	want(`ackscope_flows_begun_total`, float64(s.Begun()))
	events := 0.0
	for _, p := range []string{"gaffer", "riptide"} {
		for _, side := range []string{"a", "b"} {
			for _, e := range []string{"sent", "received", "acked", "lost", "resent"} {
				if n := own.events[p+side+e]; n > 0 {
					want(fmt.Sprintf(`ackscope_events_total{protocol="%s",side="%s",event="%s"}`, p, side, e), n)
					events += n
				}
			}
			want(fmt.Sprintf(`ackscope_lost_packets_total{protocol="%s",side="%s"}`, p, side), own.events[p+side+"lost"])
		}
	}
	if events < 1000 {
		t.Errorf("%v events, expected more of these captures", events)
	}
	below, sum, count, found, cause := 0.0, 0.0, 0.0, 0.0, 0.0
	for k, v := range got {
		switch {
		case strings.HasPrefix(k, "ackscope_rtt_seconds_sum"):
			sum += v
		case strings.HasPrefix(k, "ackscope_rtt_seconds_count"):
			count += v
		case strings.HasPrefix(k, "ackscope_rtt_seconds_bucket") && strings.Contains(k, `le="0.1"`):
			below += v
		case strings.HasPrefix(k, "ackscope_findings_total"):
			found += v
		case strings.HasPrefix(k, "ackscope_resends_total"):
			cause += v
		}
	}
	wantBelow, wantSum, wantFound := 0.0, 0.0, 0.0
	for _, r := range own.rtts {
		wantSum += r
		if r <= .1 {
			wantBelow++
		}
	}
	for _, n := range own.findings {
		wantFound += n
	}
	if count != float64(len(own.rtts)) || below != wantBelow || sum < wantSum*.999 || sum > wantSum*1.001 || count == 0 {
		t.Errorf("the histogram has %v, %v up to 0.1 s, sum %v; expected %d, %v, %v", count, below, sum, len(own.rtts),
			wantBelow, wantSum)
	}
	if found != wantFound || found == 0 || cause == 0 || cause > found {
		t.Errorf("%v findings, %v resends with a cause; expected %v findings, and some", found, cause, wantFound)
	}
	packets := 0.0
	for _, f := range s.Flows() {
		if f.Transport == capture.UDP {
			packets += float64(f.Packets[0] + f.Packets[1])
		}
	}
	counted := 0.0
	for k, v := range got {
		if strings.HasPrefix(k, "ackscope_packets_total") {
			counted += v
		}
	}
	if counted < packets { // the messages of TCP are added
		t.Errorf("%v packets counted, %v datagrams passed", counted, packets)
	}
}

// TestSeriesAreBounded: thousands of flows add no series.
func TestSeriesAreBounded(t *testing.T) {
	c, s, _ := collect(t, 0, names...)
	few := parse(t, string(c.Append(nil, s, analyze.LiveLimits, &all)))
	c, s, _ = collect(t, 20_000, names...)
	many := parse(t, string(c.Append(nil, s, analyze.LiveLimits, &all)))
	if len(few) != len(many) || many[`ackscope_packets_total{protocol="none",side="a"}`] < 20_000 {
		t.Errorf("%d series, and %d with 20,000 flows more", len(few), len(many))
	}
}

func BenchmarkTake(b *testing.B) {
	registry := dissect.NewRegistry(gaffer.Protocol)
	c := New(registry, "", "")
	r := &analyze.Record{
		Flow:   &analyze.Flow{Protocol: gaffer.Protocol, Transport: capture.UDP},
		Events: []machine.Event{{Kind: machine.EventSent}, {Kind: machine.EventAcked, RTT: 5e7}},
	}
	r.Datagram.Bytes = []byte{0}
	b.ReportAllocs()
	for b.Loop() {
		c.Take(r)
	}
}

package offload

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// seen is what the analysis says of a capture.
type seen struct {
	session *analyze.Session
	from    map[uint16][][]byte // payloads by the port of their sender
	batched int                 // of them, those that were captured together with others
	frames  int                 // frames that carry them
}

func analysed(t *testing.T, path string) *seen {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	x := &seen{from: map[uint16][][]byte{}}
	var last machine.Ref
	x.session, err = analyze.RunTwice(in, analyze.Options{
		Registry: dissect.NewRegistry(gaffer.Protocol),
		Sink: func(r *analyze.Record) {
			if r.Packet == nil || r.Packet.Transport != capture.UDP || r.Packet.Duplicate {
				return
			}
			port := r.Packet.Src.Port()
			x.from[port] = append(x.from[port], bytes.Clone(r.Datagram.Bytes))
			if r.Batch.Count > 0 {
				x.batched++
			}
			if r.Datagram.Ref != last {
				last = r.Datagram.Ref
				x.frames++
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// rules returns the findings of a capture: rule, side and certainty, with their text.
func (x *seen) rules() (list []string) {
	for _, f := range x.session.Flows() {
		for _, y := range f.Findings() {
			list = append(list, fmt.Sprintf("%s %v %v: %s", y.Rule.ID, y.Side, y.Certainty, y.Message()))
		}
	}
	return list
}

// kernel returns the path of a capture of testdata/kernel.
func kernel(t *testing.T, name string) string {
	return filepath.Join(testenv.Module(t), "testdata", "kernel", name+".pcapng.gz")
}

// TestBatchesAsSegmented: datagrams that ackscope took apart are those that the kernel segmented.
func TestBatchesAsSegmented(t *testing.T) {
	card, segmented := analysed(t, kernel(t, "gso-card")), analysed(t, kernel(t, "gso-segmented"))
	const sent = 1272
	if !slices.EqualFunc(card.from[5000], segmented.from[5000], bytes.Equal) || len(card.from[5000]) != sent {
		t.Errorf("%d datagrams, and %d where the kernel segmented them", len(card.from[5000]), len(segmented.from[5000]))
	}
	if card.frames != 133 || segmented.frames != sent || card.batched != sent-70 || segmented.batched != 0 {
		t.Errorf("%d and %d frames, %d and %d datagrams in batches", card.frames, segmented.frames, card.batched,
			segmented.batched)
	}
	x, y := card.session.Flows()[0], segmented.session.Flows()[0]
	if x.Packets != y.Packets || x.Bytes != y.Bytes {
		t.Errorf("packets %v and %v, bytes %v and %v", x.Packets, y.Packets, x.Bytes, y.Bytes)
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		a, _ := x.Summary(side)
		b, _ := y.Summary(side)
		a.Trips, b.Trips = machine.Trips{}, machine.Trips{}
		if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
			t.Errorf("side %v: %+v\nsegmented: %+v", side, a, b)
		}
	}
}

// TestErrorsAreRead: a timeline reads an ICMP error again with what it concerns.
func TestErrorsAreRead(t *testing.T) {
	in, err := capture.Open([]string{kernel(t, "refused")}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	timeline := analyze.NewTimeline(in)
	told := map[int]analyze.Quoted{}
	s, err := analyze.RunTwice(in, analyze.Options{
		Registry: dissect.NewRegistry(gaffer.Protocol),
		Sink: func(r *analyze.Record) {
			if timeline.Record(r); r.Quoted != nil {
				told[int(r.N)] = *r.Quoted
			}
		},
	})
	if err != nil || len(told) != 8 {
		t.Fatalf("%d errors, %v", len(told), err)
	}
	timeline.Attach(s)
	for n := range timeline.Len() {
		r, err := timeline.Read(n)
		if err != nil {
			t.Fatal(err)
		}
		if want, ok := told[n]; ok != (r.Quoted != nil) || ok && *r.Quoted != want {
			t.Errorf("entry %d reads as %+v, expected %+v", n, r.Quoted, want)
		}
	}
}

// TestErrors: what captures of real ICMP errors show.
func TestErrors(t *testing.T) {
	for name, want := range map[string][]string{
		"refused": {
			`icmp-refused b certain: the peer went on for 2.0 s after the first of 8 ICMP errors, such as "port unreachable"`,
			`icmp-closed b certain: 8 ICMP errors, such as "port unreachable"`,
		},
		"mtu": {
			"icmp-mtu a certain: 1 ICMP error; the largest packet had 748 bytes, and the link carries 700",
			"ip-fragmented a certain: ",
		},
	} {
		got := analysed(t, kernel(t, name))
		list := got.rules()
		same := len(list) == len(want)
		for i := range min(len(list), len(want)) {
			same = same && strings.HasPrefix(list[i], want[i])
		}
		if !same {
			t.Errorf("%s: findings %q, expected %q", name, list, want)
		}
		if q := got.session.Quotes(); q.Errors == 0 || q.Unknown > 0 {
			t.Errorf("%s: %+v", name, q)
		}
	}
}

package ledger

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/internal/traffic"
	"github.com/ackscope/ackscope/machine"
)

// text returns all that a ledger says.
func text(l *Ledger) string {
	var b strings.Builder
	side := func(name string, s *Side) {
		fmt.Fprintf(&b, "%s: %d frames\n", name, s.Frames)
		for _, r := range s.Rows() {
			fmt.Fprintf(&b, "  %+v\n", *r)
		}
	}
	fmt.Fprintf(&b, "%+v\n", l.Total())
	side("other", l.Other())
	gone, n := l.Gone()
	side(fmt.Sprint(n, " gone"), gone)
	for _, f := range l.Flows() {
		for i := range f.Sides {
			side(fmt.Sprint(f.Flow.ID, machine.Side(i)), &f.Sides[i])
		}
	}
	return b.String()
}

// rewinds counts how often an input is read again.
type rewinds struct {
	*capture.Input
	n int
}

func (r *rewinds) MayReadAhead() bool { return true }
func (r *rewinds) Rewind() error      { r.n++; return r.Input.Rewind() }

// twelve makes a capture of so many flows.
func twelve(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := traffic.Write(f, traffic.Options{Packets: 4000, Flows: 12, Loss: 0.05, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRunByThreads: any number of threads gives the same ledger. Where there is no room for all rows,
// the capture is read once more.
func TestRunByThreads(t *testing.T) {
	path := twelve(t)
	for _, room := range []int{0, 1 << 20, 4000} {
		want := ""
		for _, threads := range []int{1, 2, 5} {
			in, err := capture.Open([]string{path}, capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			src := &rewinds{Input: in}
			o := analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol), Threads: threads}
			first, err := analyze.Learn(src, o)
			if err != nil {
				t.Fatal(err)
			}
			o.Survey, src.n = first.Survey(), 0
			l, err := Run(src, o, room)
			if err != nil {
				t.Fatal(err)
			}
			got := text(l)
			if want == "" {
				want = got
			}
			if again := threads > 1 && room == 4000; got != want || src.n > 0 != again || len(l.Flows()) != 12 {
				t.Errorf("room %d, %d threads: %d flows, read %d times again, expected %v; equal to one thread: %v", room,
					threads, len(l.Flows()), src.n, again, got == want)
			}
			if err := in.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestRunForgets: the ledger forgets flows that limits remove, and the caller is told.
func TestRunForgets(t *testing.T) {
	in, err := capture.Open([]string{twelve(t)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	told := 0
	l, err := Run(in, analyze.Options{
		Registry: dissect.NewRegistry(gaffer.Protocol), Limits: analyze.Limits{Flows: 4},
		Gone: func(*analyze.Flow, analyze.Reason) { told++ },
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, gone := l.Gone(); gone != told || told < 8 || len(l.Flows()) != 4 {
		t.Errorf("%d flows are forgotten, %d are left, and %d were told", gone, len(l.Flows()), told)
	}
}

// TestExact: parts say whether one ledger would have charged the same.
func TestExact(t *testing.T) {
	for _, x := range []struct {
		what  string
		room  int
		set   func(p *parts)
		exact bool
	}{
		{"nothing special", 100, func(*parts) {}, true},
		{"as much as there is room", 100, func(p *parts) { p.list[0].used, p.list[1].used = 60, 40 }, true},
		{"more than that", 100, func(p *parts) { p.list[0].used, p.list[1].used = 60, 41 }, false},
		{"more at some time", 100, func(p *parts) { p.list[0].used = 60; p.list[1].used = 50; p.list[1].release(30) }, false},
		{"no limit", 0, func(p *parts) { p.list[0].used = 1 << 40 }, true},
		{"a forgotten flow", 100, func(p *parts) { p.list[1].forgotten = 1 }, false},
		{"too many fragments", 100, func(p *parts) {
			for i := range uint64(maxPieces + 1) {
				if kept := p.pieces.add(machine.MakeRef(0, i), &Cost{}); kept != (i < maxPieces) {
					t.Errorf("fragment %d is kept: %v", i, kept)
				}
			}
		}, false},
	} {
		p := &parts{room: x.room}
		p.split()
		p.split()
		x.set(p)
		if _, exact := p.join(); exact != x.exact {
			t.Errorf("%s: exact is %v", x.what, exact)
		}
		p.list = p.list[:1]
		if l, exact := p.join(); l != p.list[0] || !exact {
			t.Errorf("%s: one part is not exact", x.what)
		}
	}
}

// TestFragmentsOfParts: a fragment comes to another part than its datagram. The sum is that of one ledger.
func TestFragmentsOfParts(t *testing.T) {
	records := fragmentRecords()
	one := &Ledger{}
	for i := range records {
		one.Take(&records[i])
	}
	p := &parts{}
	sinks := []analyze.Sink{p.split(), p.split()}
	for i := range records {
		sinks[i%2](&records[i])
	}
	all, exact := p.join()
	if want, got := text(one), text(all); got != want || !exact {
		t.Errorf("exact: %v\n%s\nexpected\n%s", exact, got, want)
	}
	if total := all.Total(); total.Total() != 8*100*6 {
		t.Errorf("%d bits, expected those of six frames of 100 bytes", total.Total())
	}
	rows := slices.Sorted(maps.Keys(one.Other().rows))
	if fmt.Sprint(rows) != "[(IP fragments of no whole datagram) (no UDP or TCP)]" {
		t.Errorf("the records have other rows than they should: %v", rows)
	}
}

// fragmentRecords are those of six frames. Frames 1 and 2 are one datagram in two fragments, frame 3
// is a fragment of no datagram. Frames 4 and 5 carry no transport, and frame 6 is a datagram again.
func fragmentRecords() (list []analyze.Record) {
	flow := &analyze.Flow{ID: 1}
	for n := range uint64(6) {
		fragment, datagram := n == 0 || n == 2, n == 1 || n == 5
		ip := make([]byte, 100)
		if fragment || n == 1 {
			ip[7] = byte(n + 1) // where the fragment begins
		}
		ref := machine.MakeRef(0, n+1)
		k := analyze.Record{
			N: n, Frame: &capture.Frame{Ref: ref, Length: len(ip), Data: ip},
			Packet: &capture.Packet{Ref: ref, Layers: []capture.Layer{{Kind: capture.LayerIPv4, Length: 20}}},
		}
		if datagram {
			k.Flow, k.Packet.Transport, k.Packet.Length = flow, capture.UDP, 40
			k.Packet.Layers = append(k.Packet.Layers, capture.Layer{Kind: capture.LayerUDP, Offset: 20, Length: 8})
			k.Datagram = machine.Datagram{Ref: ref, Bytes: ip[28:68], Length: 40}
		}
		if n == 1 {
			k.Packet.Fragments, k.Packet.Length = 2, 140
			k.Packet.Spans = []capture.Span{{Ref: machine.MakeRef(0, 1)}, {Ref: ref}}
		}
		list = append(list, k)
	}
	return list
}

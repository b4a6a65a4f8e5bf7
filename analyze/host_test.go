package analyze_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// altered is a capture whose samples are other ones. Host is asked once the frames are read.
type altered struct {
	*capture.Input
	line *host.Timeline
}

func (x *altered) Host() *host.Timeline { return x.line }

// kernel opens a capture of testdata/kernel.
func kernel(t *testing.T, name string) *capture.Input {
	t.Helper()
	path := filepath.Join(testenv.Module(t), "testdata", "kernel", name+".pcapng.gz")
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return in
}

func study(t *testing.T, in analyze.Rewinder) *analyze.Flow {
	t.Helper()
	s, err := analyze.RunTwice(in, analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol)})
	if err != nil {
		t.Fatal(err)
	}
	return s.Flows()[0]
}

// said returns the verdicts on the findings of a rule, each with its certainty.
func said(f *analyze.Flow, rule string) (list []string) {
	for _, x := range f.Findings() {
		if v, ok := x.Host(); ok && x.Rule.ID == rule {
			list = append(list, v.Cause.String()+" "+v.Certainty.String()+": "+v.Text)
		}
	}
	return list
}

func rules(f *analyze.Flow) (list []string) {
	for _, x := range f.Findings() {
		list = append(list, x.Rule.ID)
	}
	return list
}

// TestHostOfTheKernel: what the kernel counted while the captures were taken.
func TestHostOfTheKernel(t *testing.T) {
	f := study(t, kernel(t, "host-socket"))
	const dropped = "socket certain: the kernel dropped 267 datagrams at A's socket, whose receive buffer was full"
	for _, text := range said(f, "refused") {
		if !strings.HasPrefix(text, dropped) {
			t.Errorf("%q, expected %q", text, dropped)
		}
	}
	if told, ok := f.Host(machine.A); !ok || told.Drops.N != 267 || told.Owner.Name != "game" || told.Owner.PID == 0 {
		t.Errorf("%+v, %v", told, ok)
	}
	if told, _ := f.Host(machine.B); told.Here || told.Why == "" {
		t.Errorf("the other host: %+v", told)
	}
	if list := rules(f); !slices.Contains(list, "socket-dropped") || slices.Contains(list, "read-late") {
		t.Errorf("findings %q", list)
	}
	f = study(t, kernel(t, "host-late"))
	if list := said(f, "ack-frozen"); len(list) != 1 || !strings.HasPrefix(list[0], "late likely: read late: ") {
		t.Errorf("%q", list)
	}
	if list := rules(f); slices.Contains(list, "socket-dropped") || !slices.Contains(list, "read-late") {
		t.Errorf("findings %q", list)
	}
}

// TestHostUnknown: where the samples do not cover a side or a time, nothing is concluded.
func TestHostUnknown(t *testing.T) {
	without := study(t, kernel(t, "refused"))
	if list := said(without, "icmp-refused"); len(list) > 0 {
		t.Errorf("without samples: %q", list)
	}
	in := kernel(t, "host-socket")
	f := study(t, in)
	first, server := f.First, f.A
	sample := func(at machine.Instant, ports ...uint16) *host.Sample {
		x := &host.Sample{At: at, System: 1, Ports: ports}
		x.Addresses = append(x.Addresses, server.Addr())
		return x
	}
	open := sample(first, 40000)
	open.Sockets = []host.Socket{{Local: server}}
	const unknown = "unknown unknown: unknown: "
	for name, c := range map[string]struct {
		samples []*host.Sample
		want    string
	}{
		"other time": {[]*host.Sample{sample(first-100e9, 40000)}, unknown + "the samples of the host are of another time"},
		"other port": {[]*host.Sample{sample(first), sample(first + 3e9)}, unknown + "no sample looked for its port"},
		"no socket": {
			[]*host.Sample{sample(first, 40000), sample(first+3e9, 40000)},
			unknown + "no UDP socket of the capturing host's network namespace took its datagrams",
		},
		"closed": {[]*host.Sample{open, sample(first+1e9, 40000)}, "closed certain: no socket was open on A's port"},
	} {
		line := &host.Timeline{}
		for _, s := range c.samples {
			line.Add(s)
		}
		if err := in.Rewind(); err != nil {
			t.Fatal(err)
		}
		list := said(study(t, &altered{in, line}), "refused")
		if len(list) == 0 || !strings.HasPrefix(list[0], c.want) {
			t.Errorf("%s: %q, expected %q", name, list, c.want)
		}
	}
}

// TestHostShared: where two sockets could take the datagrams, none of their counts is certain.
func TestHostShared(t *testing.T) {
	in := kernel(t, "host-socket")
	f := study(t, in)
	line := &host.Timeline{}
	for i := range 5 {
		s := &host.Sample{At: f.First + machine.Instant(i)*1e9, System: 1, Ports: []uint16{f.A.Port()}}
		s.Addresses = append(s.Addresses, f.A.Addr())
		for inode := range 2 {
			s.Sockets = append(s.Sockets, host.Socket{Local: f.A, Inode: uint64(inode), Drops: uint64(i * 100)})
		}
		line.Add(s)
	}
	if err := in.Rewind(); err != nil {
		t.Fatal(err)
	}
	f = study(t, &altered{in, line})
	for _, text := range said(f, "refused") {
		if !strings.HasPrefix(text, "socket likely: ") {
			t.Errorf("%q, expected it to be likely", text)
		}
	}
	for _, x := range f.Findings() {
		if x.Rule.ID == "socket-dropped" && x.Certainty != machine.Likely {
			t.Errorf("%s is %v", x.Rule.ID, x.Certainty)
		}
	}
}

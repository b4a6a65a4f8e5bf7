package listing

import (
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/show"
)

// TestLinesAllocateNothing counts the allocations of lines of `packets` and `events`: none, once
// the buffers have grown.
func TestLinesAllocateNothing(t *testing.T) {
	for _, name := range []string{"reliable-clean.client.pcap.gz", "u210_loss10.server.pcap.gz"} {
		in, err := capture.Open([]string{filepath.Join(testenv.Module(t), "testdata", "pcaps", name)}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		from := &reader.Recording{Paths: []string{name}}
		events, line := newEventText(show.Painter(true)), []byte(nil)
		s := &packetLister{listing: &reader.Listing{Reader: &reader.Reader{In: in}}, paint: true, times: "r"}
		packets, facts := 0, 0
		o := analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol, riptide.Protocol)}
		o.Sink = func(r *analyze.Record) {
			if packets++; packets < 100 || packets > 200 || r.Frame == nil {
				return
			}
			if n := testing.AllocsPerRun(10, func() {
				s.buf = s.buf[:0]
				s.line(s.listing.Reading.Take(r))
			}); n > 0 {
				t.Errorf("%s, packet %d: its line makes %v allocations", name, packets, n)
			}
			for i := range r.Events {
				facts++
				if n := testing.AllocsPerRun(10, func() {
					line = events.append(line[:0], from, r.Flow, &r.Events[i])
				}); n > 0 {
					t.Errorf("%s, packet %d: the line of an event makes %v allocations", name, packets, n)
				}
			}
		}
		if _, err := analyze.RunTwice(in, o); err != nil || facts < 50 {
			t.Fatalf("%s: %d events: %v", name, facts, err)
		}
	}
}

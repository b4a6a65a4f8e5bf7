package screens

import (
	"compress/gzip"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/filter/fields"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/store"
)

// await waits until a condition holds, which it checks under the store's lock.
func await(t *testing.T, s *store.Store, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		s.Lock()
		ok := holds()
		s.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it took more than a minute")
		}
	}
}

// The list names the flow that a flow continues, and sorts by the number of the flow itself.
func TestFlowThatContinues(t *testing.T) {
	f := &analyze.Flow{ID: 7, Was: &analyze.Was{ID: 3}}
	if got := flowColumns[0].text(nil, f); got != "7 (was 3)" {
		t.Errorf("%q", got)
	}
	if got := flowColumns[0].key(nil, f); got.number != 7 {
		t.Errorf("sorted by %v", got.number)
	}
}

// While a capture is read, many flows are sorted only from time to time. A key
// that changes the order takes effect at once, and at the end the order is
// correct.
func TestOrderWhileReading(t *testing.T) {
	s, pipe, data := growing(t, "reliable-two-clients.server.pcap.gz")
	pipe.more <- len(data) / 2
	await(t, s, func() bool { return len(s.Flows()) > 1 })
	br := browser.New(s, fields.NewTable(fields.Options{}), &browser.Layout{})
	table := NewSet(br, nil).Flows
	s.Lock()
	table.settle(br)
	want := slices.Clone(table.Order)
	if len(want) < 2 {
		t.Fatalf("%d flows", len(want))
	}
	turned := slices.Clone(want)
	slices.Reverse(turned)
	table.Order = slices.Clone(turned) // as it was some packets ago
	table.cost, table.made = time.Hour, time.Now()
	version := s.Version()
	s.Unlock()
	pipe.more <- len(data) / 4
	await(t, s, func() bool { return s.Version() > version })
	s.Lock()
	if table.settle(br); s.Settled() || !slices.Equal(table.Order, turned) {
		t.Error("sorted again although that would take most of the time")
	}
	table.SortTurn(br)
	if table.settle(br); !slices.Equal(table.Order, turned) || table.version != s.Version() {
		t.Error("the order that was asked for is not shown at once")
	}
	table.Order = slices.Clone(want)
	table.cost, table.made = time.Hour, time.Now()
	s.Unlock()
	close(pipe.more)
	await(t, s, s.Settled)
	s.Lock()
	defer s.Unlock()
	turned = slices.Clone(s.Flows())
	slices.Reverse(turned)
	if table.settle(br); !slices.Equal(table.Order, turned) {
		t.Error("at the end of the capture it is not in order")
	}
	table.reverse = false
	for i := range flowColumns {
		table.sort = i
		table.settle(br)
		for j := range table.Order[1:] {
			x, y := flowColumns[i].key(br, table.Order[j]), flowColumns[i].key(br, table.Order[j+1])
			if x.compare(&y) > 0 {
				t.Errorf("by %s: flow %d before %d", flowColumns[i].name, table.Order[j].ID, table.Order[j+1].ID)
			}
		}
	}
}

// growing returns the store of a capture that grows as its gate lets it, and all that the gate
// provides. The logs of the game are beside it.
func growing(t *testing.T, name string, logs ...store.Logs) (*store.Store, *gate, []byte) {
	t.Helper()
	file, err := os.Open(testenv.Capture(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	pipe := &gate{data: data, more: make(chan int, 100)}
	pipe.more <- pcapHead // Open reads it
	in, err := capture.Open([]string{"-"}, capture.Options{Keep: capture.KeepAll, Stdin: pipe})
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(in, analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol)}, true)
	for _, x := range logs {
		s.AddLogs(x)
	}
	s.Start()
	t.Cleanup(func() { _ = s.Stop() })
	return s, pipe, data
}

const pcapHead = 24 // bytes of a pcap file before its first frame

// gate is a pipe that provides n more bytes of its data for each number n that
// it is sent. It provides all of them once the channel is closed.
type gate struct {
	data []byte
	more chan int
	left int
}

func (g *gate) Read(p []byte) (int, error) {
	if len(g.data) == 0 {
		return 0, io.EOF
	}
	for g.left == 0 {
		n, ok := <-g.more
		if g.left = n; !ok {
			g.left = len(g.data)
		}
	}
	n := copy(p[:min(len(p), g.left)], g.data)
	g.data, g.left = g.data[n:], g.left-n
	return n, nil
}

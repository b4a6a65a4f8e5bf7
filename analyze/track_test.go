package analyze

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
)

// strangers writes a capture of n datagrams, each of its own flow.
func strangers(t *testing.T, n int) string {
	t.Helper()
	const linkRaw = 101
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, linkRaw, 0, 0, 0)
	for i := range n {
		const ip, udp, payload = 20, 8, 8
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
		b = append(b, 0, 0, 0, 0, ip+udp+payload, 0, 0, 0, ip+udp+payload, 0, 0, 0)
		b = append(b, 0x45, 0, 0, ip+udp+payload, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
		b = binary.BigEndian.AppendUint16(b, uint16(1000+i))
		b = append(b, 0x1e, 0x61, 0, udp+payload, 0, 0)
		b = append(b, "stranger"...)
	}
	path := filepath.Join(t.TempDir(), "strangers.pcap")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTimelineForgets: flows that a limit removes leave only their entries,
// which name them. The second run holds back their datagrams, because the
// survey does not know them. Each frame still has its own entry.
func TestTimelineForgets(t *testing.T) {
	const flows, most = 5000, 64
	in, err := capture.Open([]string{strangers(t, flows)}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	timeline := NewTimeline(in)
	s, err := RunTwice(in, Options{
		Registry: dissect.NewRegistry(testProtocol), Limits: Limits{Flows: most, Room: true},
		Sink: timeline.Record, Fed: timeline.Note, Gone: func(f *Flow, _ Reason) { timeline.Forget(f) },
	})
	if err != nil {
		t.Fatal(err)
	}
	timeline.Attach(s)
	if timeline.Len() != flows || s.Begun() != flows {
		t.Fatalf("%d entries and %d flows, expected %d of each", timeline.Len(), s.Begun(), flows)
	}
	for n := range flows {
		if e := timeline.At(n); e.Flow != n+1 || e.Ref.Frame() != uint64(n+1) {
			t.Fatalf("entry %d is frame %d, of flow %d", n, e.Ref.Frame(), e.Flow)
		}
	}
	kept := 0
	for _, k := range timeline.tracks {
		if k != nil {
			kept++
		}
	}
	if kept > most {
		t.Errorf("the timeline keeps something of %d flows, the session remembers %d", kept, most)
	}
	const pages = (flows + pageSize - 1) / pageSize
	want := pages*pageSize*int(unsafe.Sizeof(entry{})) + cap(timeline.tracks)*8 + most*int(unsafe.Sizeof(track{}))
	if got := timeline.Size(); got > want {
		t.Errorf("the timeline says that it takes %d bytes, expected at most %d", got, want)
	}
}

package tui

import (
	"slices"
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/browser"
)

// e in the messages shows just the packets of a message, and e there goes back. e at a packet goes to
// its message.
func TestFollowMessage(t *testing.T) {
	m := openModel(t, "u210_loss30.client.pcap.gz")
	screenOf(t, m, 120, 40)
	press(m, "<Enter>M")
	screenOf(t, m, 120, 40)
	all := lives(t, m)
	followed := 0
	for range 60 {
		press(m, "j")
		x := m.screens.Messages.About(m.Browser)
		if x.Message == nil || x.Message.AckedBy == 0 || x.Message.Attempts < 2 ||
			x.Message.Attempts > machine.MessageFrames {
			continue
		}
		followed++
		want := append(slices.Clone(x.Message.Frames[:x.Message.Attempts]), x.Message.AckedBy, x.Message.DeliveredBy)
		want = slices.DeleteFunc(want, func(r machine.Ref) bool { return r == 0 })
		slices.Sort(want)
		want = slices.Compact(want)
		press(m, "e")
		screenOf(t, m, 120, 40)
		var got []machine.Ref
		for row := range m.Rows() {
			if n, ok := m.EntryOf(row); ok {
				got = append(got, m.Store.Entry(n).Ref)
			}
		}
		if m.View != browser.Packets || !slices.Equal(got, want) {
			t.Fatalf("%s shows %v, expected the packets %v", m.View, got, want)
		}
		press(m, "e")
		screenOf(t, m, 120, 40)
		if y := m.screens.Messages.About(m.Browser); m.View != browser.Messages || m.Filter != nil || y.Message == nil ||
			y.Message.Frames != x.Message.Frames {
			t.Fatalf("back in %s with the filter %v, at %+v, not at %+v", m.View, m.Filter, y.Message, x.Message)
		}
	}
	if followed < 5 {
		t.Errorf("%d messages were followed", followed)
	}
	last := all[len(all)-1]
	press(m, "P")
	m.Store.Lock()
	m.JumpRef(last.Frames[0])
	m.Store.Unlock()
	press(m, "e")
	screenOf(t, m, 120, 40)
	x := m.screens.Messages.About(m.Browser)
	if x.Message == nil || !slices.Contains(x.Message.Frames[:], last.Frames[0]) {
		t.Errorf("frame %d leads to %v", last.Frames[0].Frame(), x.Message)
	}
}

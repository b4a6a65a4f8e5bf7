package screens

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
)

// following is the message whose packets are shown.
type following struct {
	filter *filter.Filter // that shows them; nil for none
	before *filter.Filter // the one in its place until then
	seek   machine.Ref    // a packet whose message the cursor goes to once it is known; 0 for none
}

// FollowMessage shows only the packets of the message at the cursor: those that carried it, and those
// that acked it and proved its arrival.
func (t *MessageTable) FollowMessage(br *browser.Browser) {
	x := t.selected()
	if x == nil {
		br.Fail("no message is selected here")
		return
	}
	subject := t.About(br)
	text := t.packetsOf(br, &x.Message)
	if text == "" {
		var err error
		if text, err = subject.Filter(br); err != nil {
			br.Fail("%v", err)
			return
		}
	}
	f, err := br.Table.Compile(text)
	if err != nil {
		br.Fail("%v", err)
		return
	}
	what, sends := x.Title, x.Attempts
	if x.ID >= 0 {
		what = fmt.Sprintf("%s %d", x.Title, x.ID)
	}
	t.follow = following{filter: f, before: br.Filter}
	br.SetFilter(f)
	br.Open(t.flow)
	if subject.Entry >= 0 {
		br.Selected, br.Follow = subject.Entry, false
	}
	br.Say("%s: %s; e shows the others again", what, machine.Count(uint64(max(sends, 0)), "packet carries it",
		"packets carry it"))
}

// packetsOf returns a filter for the frames of a message. It is empty if not all of them are known
// by number.
func (t *MessageTable) packetsOf(br *browser.Browser, m *machine.Message) string {
	if m.Attempts > machine.MessageFrames || br.Store.Several() {
		return ""
	}
	var frames []string
	for _, ref := range slices.Concat(m.Frames[:max(m.Attempts, 0)], []machine.Ref{m.AckedBy, m.DeliveredBy}) {
		if ref != 0 {
			frames = append(frames, fmt.Sprint(ref.Frame()))
		}
	}
	return "frame.number in {" + strings.Join(frames, ", ") + "}"
}

// FollowPacket goes to the message of the selected packet. If a message is followed, it shows the
// packets as before instead.
func (t *MessageTable) FollowPacket(br *browser.Browser) {
	if f := t.follow; f.filter != nil && f.filter == br.Filter {
		t.follow = following{}
		br.SetFilter(f.before)
		br.Show(browser.Messages)
		return
	}
	n := br.Selected
	if n < 0 || n >= br.Store.Len() {
		br.Fail("no packet is selected here")
		return
	}
	br.OpenFlow(br.Store.FlowID(n))
	br.Show(browser.Messages)
	t.ensure(br)
	t.follow.seek = br.Store.Entry(n).Ref
	t.seekPacket(br)
}

// seekPacket moves the cursor to the first message in the list that a packet carried, once it has
// come.
func (t *MessageTable) seekPacket(br *browser.Browser) {
	ref := t.follow.seek
	if ref == 0 || t.sorted != len(t.all) {
		return
	}
	for row, i := range t.rows {
		x := &t.all[i]
		for _, frame := range x.Frames[:max(min(x.Attempts, machine.MessageFrames), 0)] {
			if frame == ref {
				t.list.Cursor, t.follow.seek = row, 0
				return
			}
		}
	}
	if t.work.Over() {
		t.follow.seek = 0
		br.Fail("frame %s carries no message that can be told apart: %s were seen", br.Store.Frame(ref),
			show.Plural(len(t.all), "message"))
	}
}

package browser

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/store"
)

// Selection says which packets are shown, and which one is selected.
type Selection struct {
	Selected  int              // entry; -1 before there is one
	Follow    bool             // stay at the newest packet
	Filter    *filter.Filter   // nil for none
	FilterJob *store.FilterJob // nil while every packet is shown
	Refilters int              // counts the filter jobs started; a screen compares it to see a change
}

// SetFilter shows only the packets that pass a filter; nil shows all.
func (br *Browser) SetFilter(f *filter.Filter) {
	br.Filter = f
	br.Refilter()
}

// Refilter restarts the search for the packets to show.
func (br *Browser) Refilter() {
	if br.FilterJob != nil {
		br.FilterJob.Close()
		br.FilterJob = nil
	}
	if br.Flow != 0 || br.Filter != nil {
		br.FilterJob = br.Store.StartFilter(br.Flow, br.Filter)
	}
	br.Refilters++
}

// Rows returns the number of packets shown so far.
func (br *Browser) Rows() int {
	if br.FilterJob == nil {
		return br.Store.Len()
	}
	return br.FilterJob.Rows()
}

// EntryOf returns the entry of a row.
func (br *Browser) EntryOf(row int) (int, bool) {
	if br.FilterJob == nil {
		return row, row >= 0 && row < br.Store.Len()
	}
	return br.FilterJob.Entry(row)
}

// RowOf returns the row of an entry, or of the next entry shown.
func (br *Browser) RowOf(entry int) int {
	if br.FilterJob == nil {
		return entry
	}
	return br.FilterJob.Row(entry)
}

// Settle updates the selection after packets have arrived. The selection is an
// entry, so rows inserted before it do not move it.
func (br *Browser) Settle() {
	if n := br.Rows(); br.Follow && n > 0 {
		br.Selected, _ = br.EntryOf(n - 1)
	}
	if br.Selected < 0 {
		if first, ok := br.EntryOf(0); ok {
			br.Selected = first
		}
	}
	br.SkipHidden(br.SelectedRow())
}

// SkipHidden selects the packet of a row if the filter hides the selected packet.
func (br *Browser) SkipHidden(row int) {
	if e, ok := br.EntryOf(row); ok && br.FilterJob != nil && br.FilterJob.Refused(br.Selected) {
		br.Selected = e
	}
}

// SelectRow selects the packet of a row.
func (br *Browser) SelectRow(row int) {
	if n, ok := br.EntryOf(row); ok {
		br.Selected, br.Follow = n, false
	}
}

// SelectedRow returns the row of the selected packet.
func (br *Browser) SelectedRow() int { return br.RowOf(max(br.Selected, 0)) }

// MoveBy moves the selection by rows.
func (br *Browser) MoveBy(by int) {
	n := br.Rows()
	if n == 0 {
		return
	}
	br.Follow = br.Follow && by > 0
	if e, ok := br.EntryOf(min(max(br.SelectedRow()+by, 0), n-1)); ok {
		br.Selected = e
	}
}

// Step moves the selection by packets of the selected packet's flow.
func (br *Browser) Step(by int) {
	f := br.Focus()
	if f == nil {
		br.MoveBy(by)
		return
	}
	way, left := 1, by
	if by < 0 {
		way, left = -1, -by
	}
	at, n := br.Selected, br.Selected
	br.RunJob("stepping", func() bool {
		for left > 0 {
			next, how := br.Store.Beside(f, n, way)
			if n = next; how == store.StepLater {
				return false
			}
			if how == store.StepEnd {
				br.Say("the flow's %s packet", map[int]string{1: "last", -1: "first"}[way])
				break
			}
			at = n
			left--
		}
		br.Selected, br.Follow = at, false
		return true
	})
}

// ToggleFollow starts or stops following the newest packet.
func (br *Browser) ToggleFollow() {
	br.Follow = !br.Follow
	if br.Follow {
		br.Say("staying at the newest packet")
	} else {
		br.Say("staying here")
	}
}

// StepToEnd selects the flow's last packet, or its first when way is negative.
func (br *Browser) StepToEnd(way int) {
	f := br.Focus()
	if f == nil {
		return
	}
	if way > 0 {
		if n, ok := br.Store.LastOf(f); ok {
			br.Selected = n
		}
	} else if n, ok := br.Store.Find(f.FirstRef); ok {
		br.Selected = n
	}
}

// Change selects the by-th next packet of the flow that shows more than itself
// sent and received: an ack, a loss, a finding. A negative by goes back.
func (br *Browser) Change(by int) {
	f := br.Focus()
	if f == nil {
		br.Fail("no flow here")
		return
	}
	n, way := br.Selected, 1
	if by < 0 {
		way, by = -1, -by
	}
	br.RunJob("looking for a change", func() bool {
		for by > 0 {
			next, how := br.Store.Beside(f, n, way)
			if n = next; how == store.StepLater {
				return false
			}
			if how == store.StepEnd {
				br.Say("no further change")
				return true
			}
			if br.Store.Entry(n).Marks.Changes() {
				by--
			}
		}
		br.Selected, br.Follow = n, false
		return true
	})
}

// JumpSettled selects the packet that settled the fate of the selected one.
func (br *Browser) JumpSettled() {
	n := br.Selected
	if n < 0 || n >= br.Store.Len() {
		return
	}
	e := br.Store.Entry(n)
	if e.Settled < 0 {
		if !br.Store.Settled() && !br.Store.Growing() {
			br.Fail("not known yet: the capture is being read")
			return
		}
		br.Fail("frame %s: nothing in the capture settles whether it arrived", br.Store.Frame(e.Ref))
		return
	}
	br.Jump(e.Settled)
	if e.Marks.Fate() == analyze.FateLost {
		br.Say("frame %s can no longer be acked from here on", br.Store.Frame(e.Ref))
	} else {
		br.Say("here the sender learned that frame %s arrived", br.Store.Frame(e.Ref))
	}
}

// JumpAbout selects the packet that an event of the selected packet refers to.
func (br *Browser) JumpAbout(kind machine.EventKind) {
	r, err := br.Store.SettledAt(br.Selected)
	if err != nil {
		br.Fail("%v", err)
		return
	}
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == kind && e.About != 0 &&
			(kind != machine.EventAcked || br.Store.Entry(br.Selected).Ref != e.About) {
			br.JumpRef(e.About)
			return
		}
	}
	if kind == machine.EventResent {
		br.Fail("this packet sends nothing again")
		return
	}
	br.Fail("this packet's header settles nothing")
}

// JumpFreed selects the first packet of a message that was held back and whose
// life ended at the selected packet.
func (br *Browser) JumpFreed() {
	r, err := br.Store.SettledAt(br.Selected)
	if err != nil {
		br.Fail("%v", err)
		return
	}
	for i := range r.Messages {
		if x := &r.Messages[i]; x.Wait > 0 {
			br.JumpRef(x.Frames[0])
			br.Say("message %d had arrived and waited %s: message %d was missing", x.ID, show.Wait(x.Wait), x.BlockedBy)
			return
		}
	}
	br.Fail("no message that was held back ends here")
}

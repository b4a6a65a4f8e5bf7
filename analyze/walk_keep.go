package analyze

import (
	"slices"
	"sort"
)

// Distance returns how many datagrams a walk to an entry of the flow steps
// over, from the checkpoint before it. It returns most+1 if there are more than
// most. It visits each of them.
func (t *Timeline) Distance(f *Flow, n, most int) int {
	k := t.track(f)
	if k == nil || n < 0 || n >= t.entries.len() {
		return 0
	}
	after := sort.Search(len(k.checkpoints), func(i int) bool { return int(k.checkpoints[i].entry) >= n })
	from, at := uint32(0), k.last // 1 + the entry
	if after > 0 {
		from = k.checkpoints[after-1].entry + 1
	}
	switch {
	case t.FlowID(n) == f.ID:
		at = uint32(n) + 1
	case after < len(k.checkpoints):
		at = k.checkpoints[after].entry + 1
	}
	steps := 0
	for ; at > from && steps <= most; at = t.entries.at(at - 1).previous {
		steps++
	}
	return steps
}

// Keep stores a checkpoint at the walk's position, in place of the one that
// Keep stored last. Walks to later entries are then short. It does nothing
// while messages of a segment are left.
func (w *Walk) Keep() {
	t := w.timeline
	k := t.track(w.flow)
	if w.passed == 0 || w.err != nil || w.inFrame() || k == nil {
		return
	}
	if old := t.keptFlow; old > 0 && old <= len(t.tracks) && t.tracks[old-1] != nil {
		k := t.tracks[old-1]
		if i := slices.IndexFunc(k.checkpoints, func(c checkpoint) bool { return c.extra }); i >= 0 {
			t.held -= k.checkpoints[i].bytes()
			k.checkpoints = slices.Delete(k.checkpoints, i, i+1)
		}
	}
	c := checkpoint{entry: w.passed - 1, tracker: t.pack(w.tracker), places: len(k.places) - len(w.places), extra: true}
	if w.conn != nil {
		c.conn = w.conn.Clone()
	}
	i := sort.Search(len(k.checkpoints), func(i int) bool { return k.checkpoints[i].entry >= c.entry })
	if i < len(k.checkpoints) && k.checkpoints[i].entry == c.entry {
		return
	}
	k.checkpoints = slices.Insert(k.checkpoints, i, c)
	t.keptFlow = w.flow.ID
	t.held += c.bytes()
}

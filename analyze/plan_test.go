package analyze

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestPlan: how many goroutines share a run, and whether they copy records for the caller's.
func TestPlan(t *testing.T) {
	sink := func(*Record) {}
	split := func() Sink { return sink }
	separable, joined, scoped := &Survey{shards: true}, &Survey{}, &Survey{scopeless: true}
	for _, x := range []struct {
		what   string
		o      Options
		shards int
		copies bool
		sink   bool // a sink gets copies
	}{
		{"a first run", Options{}, 4, false, false},
		{"a sink that may run behind", Options{Sink: sink, Detached: true, Survey: separable}, 4, true, true},
		{"one that may not", Options{Sink: sink, Survey: separable}, 0, false, true},
		{"flows that concern each other", Options{Sink: sink, Detached: true, Survey: joined}, 1, true, true},
		{"a sink for each group", Options{Split: split, Detached: true, Survey: separable}, 4, false, false},
		{"one group, whose sink may run behind", Options{Split: split, Detached: true, Survey: joined}, 1, true, true},
		{"one group, whose sink may not", Options{Split: split, Survey: joined}, 1, false, false},
		{"endpoints with scopes", Options{Split: split, Survey: scoped}, 1, false, false},
		{"the same without trackers", Options{Split: split, Untracked: true, Survey: scoped}, 4, false, false},
	} {
		x.o.Threads = 4
		list := []Options{x.o}
		shards, copies := plan(&made{}, list)
		if shards != x.shards || copies != x.copies || (list[0].Sink != nil) != x.sink {
			t.Errorf("%s: %d shards, copies %v, a sink %v; expected %d, %v, %v", x.what, shards, copies, list[0].Sink != nil,
				x.shards, x.copies, x.sink)
		}
	}
}

// TestSeparate: goroutines do not share flows that concern each other, whatever they read of them.
func TestSeparate(t *testing.T) {
	for _, x := range []struct {
		what string
		s    *Session
		want bool
	}{
		{"flows apart", &Session{flows: []*Flow{{ID: 1}, {ID: 2}}}, true},
		{"a flow that moved", &Session{flows: []*Flow{{ID: 1}, {ID: 2, Was: &Was{}}}}, false},
		{"a flow that was read by the wrong profile", &Session{flows: []*Flow{{ID: 1}}, misread: true}, false},
		{"a flow that was explained at the end", &Session{flows: []*Flow{{ID: 1}}, late: true}, false},
	} {
		v := &Survey{}
		if v.separate(x.s); v.shards != x.want || v.scopeless != x.want {
			t.Errorf("%s: separable %v, without trackers %v", x.what, v.shards, v.scopeless)
		}
	}
	v := &Survey{begun: map[machine.Ref]int{}}
	if v.separate(&Session{}); v.shards || v.scopeless {
		t.Error("a run whose flows have other numbers is separable")
	}
}

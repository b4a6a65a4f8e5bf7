package analyze

import (
	"bytes"
	"math"
	"math/rand"
	"reflect"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestHeldStore compares the datagrams of several flows with copies, while flows are cleared and
// their blocks used again.
func TestHeldStore(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	var store heldStore
	const flows = 8
	var held [flows]heldDatagrams
	var want [flows][]machine.Datagram
	for step := range 20000 {
		i := rnd.Intn(flows)
		if rnd.Intn(30) == 0 {
			store.clear(&held[i])
			want[i] = nil
			continue
		}
		d := machine.Datagram{
			At: machine.Instant(rnd.Int63()), Ref: machine.Ref(rnd.Uint64()), From: machine.Side(rnd.Intn(2)),
			Bytes: make([]byte, rnd.Intn(300)), Length: rnd.Intn(heldLength + 1), Behind: rnd.Intn(2) == 0,
			Gaps: rnd.Intn(2) == 0, Prefix: machine.Prefix{Bytes: uint8(rnd.Intn(5)), BigEndian: rnd.Intn(2) == 0},
		}
		if rnd.Intn(100) == 0 {
			d.At = []machine.Instant{math.MinInt64, math.MaxInt64}[rnd.Intn(2)]
		}
		rnd.Read(d.Bytes)
		store.add(&held[i], &d)
		want[i] = append(want[i], d)
		got := 0
		store.each(&held[i], func(d *machine.Datagram) {
			if got == 0 && step%100 == 0 { // the datagrams of another flow, meanwhile
				other, n := (i+1)%flows, 0
				store.each(&held[other], func(*machine.Datagram) { n++ })
				if n != len(want[other]) {
					t.Fatalf("step %d: %d datagrams of another flow, expected %d", step, n, len(want[other]))
				}
			}
			x := want[i][got]
			if same := bytes.Equal(d.Bytes, x.Bytes); !same {
				t.Fatalf("step %d: other bytes", step)
			}
			x.Bytes = d.Bytes
			if !reflect.DeepEqual(*d, x) {
				t.Fatalf("step %d: %+v, expected %+v", step, *d, x)
			}
			got++
		})
		if got != len(want[i]) {
			t.Fatalf("step %d: %d datagrams, expected %d", step, got, len(want[i]))
		}
	}
}

// TestHeldStoreGivesBack checks that pages go back once no flow uses them, and are made anew.
func TestHeldStoreGivesBack(t *testing.T) {
	var store heldStore
	const flows = 20 * heldPageBlocks
	held := make([]heldDatagrams, flows)
	for round := range 3 {
		for i := range held {
			store.add(&held[i], &machine.Datagram{Bytes: make([]byte, 100), Length: 100})
		}
		if got := store.allocated(); got != flows/heldPageBlocks {
			t.Fatalf("round %d: %d pages for %d blocks", round, got, flows)
		}
		for i := range held {
			store.clear(&held[(i*7+round)%flows])
		}
		if got := store.allocated(); got != heldUnused || store.unused != got {
			t.Fatalf("round %d: %d pages are left, %d unused, expected %d", round, got, store.unused, heldUnused)
		}
		if got := len(store.pages); got > flows/heldPageBlocks {
			t.Fatalf("round %d: %d places of pages: those that went back are not used again", round, got)
		}
	}
}

// TestHeldStorePacks: while flows go in no order, the pages stay at most a third above what the
// others use. Their datagrams come back as they were.
func TestHeldStorePacks(t *testing.T) {
	var store heldStore
	const flows = 40 * heldPageBlocks
	held, rnd := make([]heldDatagrams, flows), rand.New(rand.NewSource(1))
	add := func(i int) {
		store.add(&held[i], &machine.Datagram{Ref: machine.Ref(i), Bytes: make([]byte, 20+i%200), Length: 500})
	}
	for i := range held {
		add(i)
		add(i)
	}
	packed, left := 0, rnd.Perm(flows)
	for len(left) > 0 {
		store.clear(&held[left[0]])
		if left = left[1:]; len(left) > 0 {
			add(left[len(left)-1]) // others go on
		}
		if store.sparse() {
			packed++
			keep := store.evacuate()
			for _, i := range left {
				store.move(&held[i], keep)
			}
			store.truncate(keep)
			for _, i := range left {
				store.each(&held[i], func(d *machine.Datagram) {
					if d.Ref != machine.Ref(i) || len(d.Bytes) != 20+i%200 {
						t.Fatalf("flow %d has a datagram of frame %d with %d bytes", i, d.Ref, len(d.Bytes))
					}
				})
			}
		}
		if pages := store.allocated(); pages > heldSparse && 3*pages*heldPageBlocks > 4*store.used {
			t.Fatalf("%d pages have %d blocks", pages, store.used)
		}
	}
	if packed < 3 || store.used != 0 {
		t.Errorf("packed %d times, %d blocks are left", packed, store.used)
	}
}

// allocated returns how many pages the store has.
func (s *heldStore) allocated() (n int) {
	for _, p := range s.pages {
		if p != nil {
			n++
		}
	}
	return n
}

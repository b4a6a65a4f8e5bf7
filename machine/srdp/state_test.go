package srdp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// The queue must behave as a list that is sorted before each query.
func TestQueueModel(t *testing.T) {
	type entry struct {
		id      uint16
		retry   machine.Instant
		order   int
		copies  uint32
		timeout time.Duration
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var (
			q     Queue
			model []entry
			now   machine.Instant
			order int
			next  = uint16(rng.IntN(1 << 15))
		)
		most := 1 << rng.IntN(9)
		sorted := func() {
			slices.SortFunc(model, func(a, b entry) int {
				if a.retry != b.retry {
					return int(a.retry - b.retry)
				}
				return a.order - b.order
			})
		}
		for range 4000 {
			now = now.Add(time.Duration(rng.IntN(3)))
			order++
			switch k := rng.IntN(10); {
			case k < 5 && len(model) < most:
				id, timeout := next, time.Duration(rng.IntN(50))
				next = (next + 1) & 0x7fff
				if rng.IntN(8) == 0 {
					id = uint16(rng.IntN(1 << 15)) // collides in the index, or is in the queue already
				}
				s, had := q.Enter(id, now, timeout), slices.ContainsFunc(model, func(e entry) bool { return e.id == id })
				if had != (s == nil) {
					t.Fatalf("seed %d: entering %d that was there: %v gave %v", seed, id, had, s)
				}
				if s != nil {
					s.Datagram = append(s.Datagram, byte(id), byte(id>>8))
					model = append(model, entry{id, now.Add(timeout), order, 1, timeout})
				}
			case k < 7 && len(model) > 0:
				i := rng.IntN(len(model))
				s := q.Find(model[i].id)
				q.Resend(s, now)
				e := &model[i]
				e.copies, e.retry, e.order = e.copies+1, now.Add(e.timeout), order
			case k < 9 && len(model) > 0:
				i := rng.IntN(len(model))
				q.Remove(q.Find(model[i].id))
				model = slices.Delete(model, i, i+1)
			default:
				sorted()
				var got []uint16
				q.InOrder(func(s *Sent) bool { got = append(got, s.ID); return true })
				for i, e := range model {
					if i >= len(got) || got[i] != e.id {
						t.Fatalf("seed %d: in order %v, want %+v", seed, got, model)
					}
				}
			}
			sorted()
			if q.Len() != len(model) {
				t.Fatalf("seed %d: %d packets, want %d", seed, q.Len(), len(model))
			}
			if h := q.Head(); (h == nil) != (len(model) == 0) || h != nil &&
				(h.ID != model[0].id || q.RetryAt(h) != model[0].retry || h.Copies != model[0].copies) {
				t.Fatalf("seed %d: the head is %+v, want %+v", seed, h, model)
			}
			for _, e := range model {
				if s := q.Find(e.id); s == nil || s.ID != e.id || !bytes.Equal(s.Datagram, []byte{byte(e.id), byte(e.id >> 8)}) {
					t.Fatalf("seed %d: %d is %+v", seed, e.id, s)
				}
			}
			if q.Find(next) != nil && !slices.ContainsFunc(model, func(e entry) bool { return e.id == next }) {
				t.Fatalf("seed %d: %d was found and never entered", seed, next)
			}
		}
		c := q.Clone()
		for q.Len() > 0 {
			q.Remove(q.Head())
		}
		if c.Len() != len(model) || len(model) > 0 && c.Head().ID != model[0].id {
			t.Fatalf("seed %d: emptying a queue emptied its clone", seed)
		}
	}
}

func TestSample(t *testing.T) {
	var q Queue
	s := q.Enter(5, 100, 10)
	if got := s.Sample(107); got != (Sample{FromLast: 7, FromFirst: 7}) {
		t.Errorf("of one copy: %+v", got)
	}
	q.Resend(s, 110)
	if got := s.Sample(113); got != (Sample{FromLast: 3, FromFirst: 13, Ambiguous: true}) {
		t.Errorf("of two copies: %+v", got)
	}
	s.Repeats = 3
	if s.Exhausted() {
		t.Error("two of three copies, and exhausted")
	}
	q.Resend(s, 120)
	if !s.Exhausted() {
		t.Error("three of three copies, and not exhausted")
	}
}

func TestReceived(t *testing.T) {
	once, ordered, both := Promise{Once: true}, Promise{Ordered: true}, Promise{Once: true, Ordered: true}
	type copy struct {
		id   uint16
		asks Promise
		sum  uint32
		at   machine.Instant
		want Fate
	}
	for _, c := range []struct {
		name   string
		rules  Rules
		copies []copy
	}{
		{"no promise, none kept", Rules{4, 100}, []copy{{1, Promise{}, 0, 0, Delivered}, {1, Promise{}, 0, 1, Delivered}}},
		{"once", Rules{4, 100}, []copy{
			{1, once, 0, 0, Delivered},
			{1, once, 0, 100, Duplicate},
			{1, once, 0, 200, Duplicate},
			{1, once, 0, 301, Delivered},
		}},
		{
			"another packet of the same id",
			Rules{4, 100},
			[]copy{{1, once, 7, 0, Delivered}, {1, once, 8, 1, Delivered}, {1, once, 7, 2, Duplicate}},
		},
		{"the list is bounded", Rules{2, 100}, []copy{
			{1, once, 0, 0, Delivered},
			{2, once, 0, 0, Delivered},
			{1, once, 0, 0, Duplicate},
			{3, once, 0, 0, Delivered},
			{2, once, 0, 0, Duplicate},
			{1, once, 0, 0, Delivered},
			{2, once, 0, 0, Delivered},
		}},
		{"a list of none", Rules{0, 100}, []copy{{1, both, 0, 0, Delivered}, {1, both, 0, 0, Delivered}}},
		{"ordered: the newest may come again, older ones not", Rules{4, 100}, []copy{
			{1, ordered, 0, 0, Delivered},
			{1, ordered, 0, 1, Delivered},
			{2, ordered, 0, 2, Delivered},
			{1, ordered, 0, 3, Late},
			{9, once, 0, 4, Delivered},
			{2, ordered, 0, 5, Delivered},
		}},
		{"both", Rules{4, 100}, []copy{
			{1, both, 0, 0, Delivered},
			{1, both, 0, 1, Duplicate},
			{2, both, 0, 2, Delivered},
			{1, both, 0, 3, Duplicate},
		}},
		{"what is out of the list is not the newest", Rules{2, 100}, []copy{
			{1, ordered, 0, 0, Delivered},
			{2, once, 0, 0, Delivered},
			{3, once, 0, 0, Delivered},
			{2, once, 0, 0, Duplicate},
			{1, ordered, 0, 1, Delivered},
			{1, ordered, 0, 2, Delivered},
		}},
	} {
		var r Received
		for i, x := range c.copies {
			if got := r.Arrive(&c.rules, x.id, x.asks, x.sum, x.at); got != x.want {
				t.Errorf("%s, copy %d (id %d): %v, want %v", c.name, i+1, x.id, got, x.want)
			}
		}
		if r.Len() > c.rules.Recent {
			t.Errorf("%s: %d ids are kept", c.name, r.Len())
		}
	}
}

func TestReceivedClone(t *testing.T) {
	rules := DefaultRules()
	var r Received
	for id := range uint16(200) {
		r.Arrive(&rules, id, Promise{Once: true}, 0, machine.Instant(id))
	}
	c := r.Clone()
	r.Arrive(&rules, 200, Promise{Once: true}, 0, 200)
	var ids []uint16
	c.All(func(id uint16, at machine.Instant) {
		ids = append(ids, id)
		if at != machine.Instant(id) {
			t.Errorf("%d came at %d", id, at)
		}
	})
	if len(ids) != rules.Recent || ids[0] != 136 || ids[63] != 199 || c.Has(&rules, 200, 0, 200) ||
		!r.Has(&rules, 200, 0, 200) {
		t.Errorf("the clone holds %v", ids)
	}
}

// Sums must differ for packets that differ in one bit, in their flags, or in
// how many zeros they end with. They must be spread evenly.
func TestSum(t *testing.T) {
	seen := map[uint32]string{}
	add := func(name string, flags uint8, b []byte) {
		sum := Sum(flags, b)
		if other, ok := seen[sum]; ok {
			t.Errorf("%s and %s have the sum %#x", name, other, sum)
		}
		seen[sum] = name
	}
	text := []byte("position 12.5 7.25, heading north")
	for n := range len(text) {
		add(fmt.Sprint("the first ", n), 0, text[:n])
		add(fmt.Sprint(n, " zeros"), 1, make([]byte, n))
	}
	for bit := range 8 * len(text) {
		text[bit/8] ^= 1 << (bit % 8)
		add(fmt.Sprint("bit ", bit), 0, text)
		text[bit/8] ^= 1 << (bit % 8)
	}
	add("the text", 0, text)
	add("other flags", 1, text)
	const packets = 1 << 16
	var ones [32]int
	for i := range uint64(packets) {
		sum := Sum(0, binary.LittleEndian.AppendUint64(nil, i))
		for bit := range ones {
			ones[bit] += int(sum >> bit & 1)
		}
	}
	for bit, n := range ones {
		if n < packets*48/100 || n > packets*52/100 {
			t.Errorf("bit %d is set in %d of %d sums", bit, n, packets)
		}
	}
}

// Ten thousand packets are in flight. Each one is acknowledged and followed by
// another.
func BenchmarkQueue(b *testing.B) {
	var q Queue
	now, id := machine.Instant(0), uint16(0)
	enter := func() {
		s := q.Enter(id&0x7fff, now, 500*time.Millisecond)
		s.Datagram = append(s.Datagram, 1, 2, 3, 4)
		id++
	}
	for range 10000 {
		now++
		enter()
	}
	b.ReportAllocs()
	for b.Loop() {
		now++
		q.Remove(q.Find((id - 10000) & 0x7fff))
		enter()
	}
}

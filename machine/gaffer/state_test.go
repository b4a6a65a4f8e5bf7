package gaffer

import (
	"math/rand"
	"testing"
)

func reliable() *Rules {
	return &Rules{SequenceBits: 16, AckBits: 32, Sent: 256, Received: 256, Partial: 64}
}

func article() *Rules {
	return &Rules{SequenceBits: 16, AckBits: 32, Sent: 1024, Received: 1024}
}

// model is a naive State: maps keyed by the count of packets ever sent. Numbers never
// wrap, no slot is shared, and nothing needs clearing.
type model struct {
	window, width int64
	newest        int64 // -1 none
	received      map[int64]bool
	next          int64
	acked         map[int64]bool
}

func newModel(r *Rules) *model {
	return &model{
		window: int64(r.Received), width: int64(r.AckBits), newest: -1, received: map[int64]bool{},
		acked: map[int64]bool{},
	}
}

func (m *model) arrive(seq int64, refuse bool) Fate {
	switch {
	case seq <= m.newest-m.window:
		return Stale
	case m.received[seq]:
		return Duplicate
	case refuse:
		return Refused
	}
	m.received[seq] = true
	m.newest = max(m.newest, seq)
	return Accepted
}

func (m *model) acks() (ack uint32, ackBits uint64) {
	for n := range m.width {
		if m.received[m.newest-n] {
			ackBits |= 1 << n
		}
	}
	return uint32(m.newest), ackBits
}

func (m *model) readAcks(ack int64, ackBits uint64) (told uint64) {
	for n := range int64(64) {
		if q := ack - n; ackBits>>n&1 != 0 && q >= 0 && q < m.next && q >= m.next-m.window && !m.acked[q] {
			m.acked[q] = true
			told |= 1 << n
		}
	}
	return told
}

// TestStateAgainstModel compares State with the model over random losses, reordering,
// duplicates, refusals and jumps, across several wraps.
func TestStateAgainstModel(t *testing.T) {
	for _, r := range []*Rules{
		reliable(), article(),
		{SequenceBits: 8, AckBits: 16, Sent: 64, Received: 64},
		{SequenceBits: 16, AckBits: 64, Sent: 100, Received: 100}, // not a power of two: allocated at full size
		{SequenceBits: 32, AckBits: 8, Sent: 256, Received: 256},
	} {
		for seed := range int64(6) {
			rnd := rand.New(rand.NewSource(seed))
			s, m := NewState(r), newModel(r)
			mask := int64(r.Mask())
			front := int64(0)
			for step := range 60000 {
				if rnd.Intn(400) == 0 {
					front += int64(rnd.Intn(int(min(mask/3, 3000))))
				}
				front += int64(rnd.Intn(3))
				seq := max(0, front-int64(rnd.Intn(1+rnd.Intn(r.Received+r.Received/4))))
				// Half the range counts from the far edge of the window, not from the newest
				// packet. A longer jump is stale for State but not for the model.
				if edge := m.newest + 1 - m.window; seq-edge >= mask/2 || edge-seq >= mask/2 {
					continue
				}
				if size := int64(r.Received); size&(size-1) != 0 && (seq&^mask != m.newest&^mask) {
					continue // slots are shared across the wrap: State forgets entries, the model does not
				}
				refuse := rnd.Intn(20) == 0
				if got, want := s.Arrive(uint32(seq&mask), refuse), m.arrive(seq, refuse); got != want {
					t.Fatalf("%+v seed %d step %d: packet %d with newest %d: %v, expected %v", *r, seed, step, seq,
						m.newest, got, want)
				}
				if m.newest < 0 {
					continue
				}
				ack, ackBits := s.Acks()
				wantAck, wantBits := m.acks()
				if size := r.Received; size&(size-1) != 0 && m.newest&mask < int64(size) {
					continue
				}
				if ack != wantAck&r.Mask() || ackBits != wantBits {
					t.Fatalf("%+v seed %d step %d: ack %d %b, expected %d %b", *r, seed, step, ack, ackBits,
						wantAck&r.Mask(), wantBits)
				}
			}
		}
	}
}

func TestReadAcksAgainstModel(t *testing.T) {
	for _, r := range []*Rules{reliable(), article(), {SequenceBits: 8, AckBits: 16, Sent: 64, Received: 64}} {
		for seed := range int64(6) {
			rnd := rand.New(rand.NewSource(seed))
			s, m := NewState(r), newModel(r)
			mask := int64(r.Mask())
			for step := range 60000 {
				for range rnd.Intn(3) {
					s.Send(Sent{})
					m.next++
				}
				if m.next == 0 {
					continue
				}
				back := rnd.Intn(1 + rnd.Intn(1+rnd.Intn(int(min(m.next, mask/3)))))
				ack := m.next - 1 - int64(back)
				ackBits := rnd.Uint64() & (1<<r.AckBits - 1)
				got := s.ReadAcks(r.Claims(uint32(ack&mask), ackBits), 0, 0)
				if want := m.readAcks(ack, ackBits); got != want {
					t.Fatalf("%+v seed %d step %d: next %d ack %d bits %b: told %b, expected %b", *r, seed, step, m.next, ack,
						ackBits, got, want)
				}
			}
		}
	}
}

// TestWindowEdge checks reliable's window edges: with newest N, N-255 is accepted and
// N-256 is stale.
func TestWindowEdge(t *testing.T) {
	for _, newest := range []uint32{1000, 255, 100, 0, 65535} {
		for _, c := range []struct {
			behind uint32
			want   Fate
		}{{255, Accepted}, {256, Stale}, {257, Stale}, {254, Accepted}} {
			s := NewState(reliable())
			s.Join(Claims{Newest: newest, Named: 1, Width: 32})
			if got := s.Arrive((newest-c.behind)&0xffff, false); got != c.want {
				t.Errorf("newest %d, %d behind: %v, expected %v", newest, c.behind, got, c.want)
			}
			if c.want == Stale {
				continue
			}
			if got := s.Arrive((newest-c.behind)&0xffff, false); got != Duplicate {
				t.Errorf("newest %d, %d behind, again: %v, expected a duplicate", newest, c.behind, got)
			}
		}
	}
}

// TestFreshWindow: the window of a fresh endpoint ends at 65280. Sequences up to half
// the range below that are stale.
func TestFreshWindow(t *testing.T) {
	for sequence, want := range map[uint32]Fate{
		0: Accepted, 1: Accepted, 32511: Accepted, 32512: Stale, 65279: Stale, 65280: Accepted, 65535: Accepted,
	} {
		s := NewState(reliable())
		if got := s.Arrive(sequence, false); got != want {
			t.Errorf("first packet %d: %v, expected %v", sequence, got, want)
		}
	}
}

// TestHalfRange: at a distance of exactly 32768 the larger number is the newer one.
func TestHalfRange(t *testing.T) {
	r := reliable()
	for _, c := range []struct {
		a, b  uint32
		newer bool
	}{
		{32768, 0, true},
		{0, 32768, false},
		{40000, 7232, true},
		{7232, 40000, false},
		{32767, 0, true},
		{0, 32769, true},
		{5, 5, false},
		{0, 65535, true},
	} {
		if got := r.Newer(c.a, c.b); got != c.newer {
			t.Errorf("%d newer than %d: %v, expected %v", c.a, c.b, got, c.newer)
		}
		if d := r.Distance(c.a, c.b); (d > 0) != c.newer {
			t.Errorf("distance of %d from %d: %d", c.a, c.b, d)
		}
	}
}

// TestSentEdge: an ack counts once, and only while the sent buffer holds its packet.
func TestSentEdge(t *testing.T) {
	s := NewState(reliable())
	for range 300 {
		s.Send(Sent{})
	}
	for _, c := range []struct {
		sequence uint32
		want     uint64
	}{{300 - 257, 0}, {300 - 256, 1}, {300 - 256, 0}, {299, 1}, {300, 0}} {
		if got := s.ReadAcks(Claims{Newest: c.sequence, Named: 1, Width: 32}, 0, 0); got != c.want {
			t.Errorf("ack of %d with next 300: told %b, expected %b", c.sequence, got, c.want)
		}
	}
}

// TestFragmentMovesWindow: the first fragment of a packet moves the window, so ack
// names an unreceived packet.
func TestFragmentMovesWindow(t *testing.T) {
	s := NewState(reliable())
	for q := range uint32(4) {
		s.Arrive(q, false)
	}
	if f := s.ArriveFragment(5, 1, 3); f != FragmentKept {
		t.Fatalf("first fragment: %v", f)
	}
	if ack, ackBits := s.Acks(); ack != 5 || ackBits != 0x3c {
		t.Fatalf("ack %d %#x, expected 5 0x3c (as in reliable-jitter80, client sequence 9)", ack, ackBits)
	}
	if f := s.ArriveFragment(5, 1, 3); f != FragmentIgnored {
		t.Errorf("the same fragment again: %v", f)
	}
	if f := s.ArriveFragment(5, 0, 4); f != FragmentInvalid {
		t.Errorf("a fragment of another count: %v", f)
	}
	s.ArriveFragment(5, 2, 3)
	if f := s.ArriveFragment(5, 0, 3); f != FragmentComplete {
		t.Fatalf("last fragment: %v", f)
	}
	if f := s.Arrive(5, false); f != Accepted {
		t.Fatalf("the whole: %v", f)
	}
	s.Forget(5)
	if f := s.ArriveFragment(5, 0, 3); f != FragmentIgnored {
		t.Errorf("a fragment of a received packet: %v", f)
	}
	// Accepted packets also move the table's window: 64 behind is the edge.
	s.ArriveFragment(7, 0, 2)
	s.Arrive(70, false)
	if s.PartialOf(7) == nil {
		t.Error("63 behind: dropped")
	}
	s.Arrive(71, false)
	if s.PartialOf(7) != nil {
		t.Error("64 behind: still there")
	}
	if f := s.ArriveFragment(7, 1, 2); f != FragmentInvalid {
		t.Errorf("a fragment 64 behind: %v", f)
	}
	if f := s.ArriveFragment(8, 1, 2); f != FragmentKept {
		t.Errorf("a fragment 63 behind: %v", f)
	}
}

// TestNoStaleClear shows the article's first listing: it takes an entry of the previous
// wrap for a new one.
func TestNoStaleClear(t *testing.T) {
	naive := article()
	naive.NoStaleClear = true
	for _, c := range []struct {
		rules *Rules
		want  uint64
	}{{article(), 1}, {naive, 0b101}} {
		s := NewState(c.rules)
		s.Arrive(10, false)
		for q := uint32(2000); q < 65536; q += 2000 {
			s.Arrive(q, false)
		}
		s.Arrive(12, false)
		if _, ackBits := s.Acks(); ackBits != c.want {
			t.Errorf("clears %v: ack_bits %b, expected %b", !c.rules.NoStaleClear, ackBits, c.want)
		}
	}
}

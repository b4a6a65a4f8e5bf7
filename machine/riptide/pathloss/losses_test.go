package pathloss

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// TestWays: a count on one way does not change the other.
func TestWays(t *testing.T) {
	var l Losses
	l.Stepped(0)
	l.Stepped(3)
	l.Overtaken()
	if p, sure := l.ToTap(); p.Settled != 5 || p.Lost != 2 || sure != machine.Possible {
		t.Errorf("of %d messages on the way to the tap %d were lost, expected 2 of 5", p.Settled, p.Lost)
	}
	if p, both := l.Beyond(true); p.Settled != 0 || both {
		t.Errorf("%d messages are judged beyond the tap, expected none", p.Settled)
	}
	l.Came()
	l.Lost()
	l.AckLost()
	l.Notify(true)
	if p, both := l.Beyond(true); p.Settled != 4 || p.Lost != 2 || both {
		t.Errorf("of %d messages beyond the tap %d were lost (both ways %v), expected 2 of 4, one way", p.Settled,
			p.Lost, both)
	}
	// Three more than were surely lost: the way is open.
	for range 3 {
		l.EitherLost()
	}
	if p, both := l.Beyond(true); p.Settled != 6 || p.Lost != 5 || !both {
		t.Errorf("of %d messages %d were lost (both ways %v), expected 5 of 6, both ways", p.Settled, p.Lost, both)
	}
}

// TestUnnamed: copies without an Ack are lost once their block had time for an answer. Any number
// of Acks counts no more copies than were sent.
func TestUnnamed(t *testing.T) {
	const answer = 100 * time.Millisecond
	var l Losses
	at := machine.Instant(0)
	for n := range machine.PathBlock {
		at = at.Add(time.Millisecond)
		l.Unnamed.Copy(at)
		if n%4 != 0 {
			l.Unnamed.Ack()
		}
	}
	l.CountUnnamed(at.Add(answer), answer)
	if p, _ := l.Beyond(true); p.Settled != 0 {
		t.Errorf("%d copies are settled before their time", p.Settled)
	}
	l.CountUnnamed(at.Add(answer+1), answer)
	if p, both := l.Beyond(true); p.Settled != machine.PathBlock || p.Lost != machine.PathBlock/4 || !both {
		t.Errorf("of %d copies %d were lost, expected a quarter of %d", p.Settled, p.Lost, machine.PathBlock)
	}
	l.Unnamed.Copy(at)
	l.Finish()
	if p, _ := l.Beyond(true); p.Settled != machine.PathBlock+1 || p.Lost != machine.PathBlock/4+1 {
		t.Errorf("at the end %d of %d copies were lost, expected one more", p.Lost, p.Settled)
	}
}

// TestBounds checks the invariants with random calls.
func TestBounds(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 8))
		var l Losses
		at := machine.Instant(0)
		for range 2000 {
			at = at.Add(time.Duration(rng.IntN(20)) * time.Millisecond)
			switch rng.IntN(12) {
			case 0:
				l.Stepped(rng.Uint64N(200))
			case 1:
				l.Overtaken()
			case 2:
				l.Came()
			case 3:
				l.Lost()
			case 4:
				l.AckLost()
			case 5:
				l.EitherLost()
			case 6, 7, 8:
				l.Unnamed.Copy(at)
			case 9, 10:
				l.Unnamed.Ack()
			case 11:
				l.CountUnnamed(at, 50*time.Millisecond)
			}
			u := &l.Unnamed
			if u.block > u.copies || u.counted > u.copies || u.unanswered > u.counted {
				t.Fatalf("seed %d: of %d copies a block up to %d, %d judged, %d unanswered", seed, u.copies, u.block, u.counted,
					u.unanswered)
			}
			for _, p := range []machine.PathLoss{l.toTap, l.beyond, l.both} {
				if p.Lost > p.Settled {
					t.Fatalf("seed %d: %d of %d were lost", seed, p.Lost, p.Settled)
				}
			}
			if l.beyond.Settled > l.both.Settled {
				t.Fatalf("seed %d: %d judged beyond the tap, %d both ways", seed, l.beyond.Settled, l.both.Settled)
			}
		}
	}
}

package analyze

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// sends returns the pace of a side with these gaps between its packets, of 100 bytes each.
func sends(limit time.Duration, gaps ...time.Duration) (p pace) {
	d := machine.Datagram{At: machine.Instant(time.Hour), Ref: 1, Length: 100}
	p.note(&d, limit)
	for _, gap := range gaps {
		d.At, d.Ref = d.At.Add(gap), d.Ref+1
		p.note(&d, limit)
	}
	return p
}

func repeat(n int, gaps ...time.Duration) (list []time.Duration) {
	for range n {
		list = append(list, gaps...)
	}
	return list
}

func join(lists ...[]time.Duration) (all []time.Duration) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// TestStall: a pause counts only for a side that usually sends, and that goes on as before.
func TestStall(t *testing.T) {
	const ms = time.Millisecond
	frames := repeat(200, 16*ms)
	bursts := repeat(100, join(repeat(19, 0), repeat(1, time.Second))...)
	for _, c := range []struct {
		name string
		gaps []time.Duration
		want time.Duration
		ref  machine.Ref
	}{
		{"too few packets", repeat(62, 16*ms), -1, 0},
		{"no pause", frames, 0, 0},
		{"a pause", join(frames, repeat(1, 700*ms), frames), 700 * ms, 202},
		{"the longest of two", join(frames, repeat(1, 700*ms), frames, repeat(1, 900*ms), frames), 900 * ms, 403},
		{"a frame that took long", join(frames, repeat(1, 100*ms), frames), 0, 0},
		{"more rarely from then on", join(frames, repeat(20, time.Second)), 0, 0},
		{"a pause at the end", join(frames, repeat(1, 700*ms)), 0, 0},
		{"heartbeats", repeat(100, time.Second), 0, 0},
		{
			"a pause among heartbeats", join(repeat(100, time.Second), repeat(1, 10*time.Second), repeat(9, time.Second)),
			10 * time.Second, 102,
		},
		{"bursts once a second", bursts, -1, 0},
		{"a clock that steps back", join(frames, repeat(1, -time.Hour), frames), 0, 0},
	} {
		p := sends(500*ms, c.gaps...)
		if got, ref := p.stall(); got != c.want || ref != c.ref {
			t.Errorf("%s: %v at frame %d, expected %v at %d", c.name, got, ref, c.want, c.ref)
		}
	}
	p := sends(800*ms, join(frames, repeat(1, 700*ms), frames, repeat(1, 900*ms), frames)...)
	if p.long.pauses != 1 {
		t.Errorf("%d pauses from 800 ms on, expected 1", p.long.pauses)
	}
}

// TestPeak: the busiest second is by the clock, and its first packet is named.
func TestPeak(t *testing.T) {
	p := sends(time.Second, join(repeat(9, 100*time.Millisecond), repeat(1, time.Second), repeat(19, 50*time.Millisecond),
		repeat(3, time.Second))...)
	if p.peak != 1800 || p.peakRef != 13 { // packets 13 to 30 came between 2.0 and 2.9 s
		t.Errorf("%d bytes from frame %d, expected 1800 from 13", p.peak, p.peakRef)
	}
	one := sends(time.Second, 999*time.Millisecond, time.Millisecond)
	if one.peak != 200 || one.peakRef != 1 {
		t.Errorf("%d bytes from frame %d, expected 200 from 1", one.peak, one.peakRef)
	}
}

// TestPaceAllocates: counting a packet takes no memory.
func TestPaceAllocates(t *testing.T) {
	var p pace
	d := machine.Datagram{Length: 100}
	if n := testing.AllocsPerRun(1000, func() {
		d.At = d.At.Add(16 * time.Millisecond)
		p.note(&d, time.Second)
	}); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

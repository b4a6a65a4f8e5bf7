package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// srdpOracles are the oracles of the SRDP faults.
var srdpOracles = map[string]oracles{
	"ack-missing":          {srdpAnswers, srdpAcksAway}, // away: acknowledgements are lost and duplicated
	"ack-twice":            {srdpAnswers, srdpAcksAway},
	"duplicate-unanswered": {srdpAnswers, srdpAcksAway},
	"ack-id-off-by-one":    {srdpAnswers, srdpAcksAway},
	"ack-mark-missing":     {differs, srdpAcksAway}, // away: without the mark it is not a packet
	"ack-byte-order":       {differs, srdpAcksAway},
	"resend-early":         {srdpUneven, explained}, // away: jitter, and copies may be lost
	"resend-late":          {srdpUneven, explained},
	"resend-without-end":   {srdpAcked, explained}, // away: the acknowledgements may be lost
	"repeats-ignored":      {srdpOrder, explained}, // away: packets overtake each other
	"order-ignored":        {srdpOrder, explained},
	"resend-renumbered":    {srdpReused, srdpReused},
	"resend-changed":       {srdpReused, srdpReused},
	"resend-without-flags": {srdpReused, srdpReused},
	"id-repeated":          {srdpReused, srdpReused},
	"wrap-at-16-bits":      {srdpMarked, srdpMarked},
}

// srdp passes the packets of a view to each until it returns true.
func (v *view) srdp(each func(i int, pk *wire.Packet) (wrong bool)) (frame uint64) {
	p := wire.Default().In(wire.Direct)
	var pk wire.Packet
	for i, x := range v.sightings {
		if p.Fits(x.b, len(x.b), &pk) && each(i, &pk) {
			return v.frames[i]
		}
	}
	return 0
}

// srdpAnswers: each copy that reaches the endpoint is acknowledged once, in
// order of arrival.
func srdpAnswers(_ *testing.T, v *view) uint64 {
	type arrival struct {
		id uint16
		at machine.Instant
	}
	var open []arrival
	spoke := machine.Instant(0)
	return v.srdp(func(i int, pk *wire.Packet) bool {
		at := v.sightings[i].at
		switch own := v.sightings[i].own; {
		case !own && !pk.Ack:
			open = append(open, arrival{pk.ID, at})
		case !own:
		case pk.Ack:
			if len(open) == 0 || open[0].id != pk.ID {
				return true
			}
			open = open[1:]
		case len(open) > 0 && at.Sub(open[0].at) >= patience && spoke.Sub(open[0].at) >= patience/2:
			return true
		}
		if v.sightings[i].own {
			spoke = at
		}
		return false
	})
}

// srdpAcksAway: an acknowledged packet has passed the tap towards the endpoint.
// IDs before the first that passed may be older than the capture.
func srdpAcksAway(_ *testing.T, v *view) uint64 {
	passed := map[int64]bool{}
	first, newest := int64(-1), int64(0)
	of := func(id uint16) int64 { return newest + int64(int16((id-uint16(newest))<<1)>>1) }
	return v.srdp(func(i int, pk *wire.Packet) bool {
		q := of(pk.ID)
		switch own := v.sightings[i].own; {
		case !own && !pk.Ack:
			if first < 0 {
				first, newest, q = int64(pk.ID), int64(pk.ID), int64(pk.ID)
			}
			newest = max(newest, q)
			passed[q] = true
		case own && pk.Ack:
			return first >= 0 && q > first && !passed[q]
		}
		return false
	})
}

// srdpReused: a packet that is sent again has the same bytes.
func srdpReused(_ *testing.T, v *view) uint64 {
	known := map[uint16][]byte{}
	return v.srdp(func(i int, pk *wire.Packet) bool {
		if !v.sightings[i].own || pk.Ack {
			return false
		}
		was, ok := known[pk.ID]
		known[pk.ID] = v.sightings[i].b
		return ok && !bytes.Equal(was, v.sightings[i].b)
	})
}

// srdpTimer is the greatest delay of a timer, in an endpoint that goes on
// sending.
const srdpTimer = 100 * time.Millisecond

// srdpUneven: the time between the copies of a packet is constant: Delta_Time.
// A copy can be late by the delay of its timer. But a datagram between two
// copies shows that the endpoint had checked its timers.
func srdpUneven(_ *testing.T, v *view) uint64 {
	type packet struct {
		at          machine.Instant
		least, most time.Duration // bounds of the time between two copies
	}
	packets := map[uint16]*packet{}
	spoke := machine.Instant(0)
	return v.srdp(func(i int, pk *wire.Packet) bool {
		if !v.sightings[i].own {
			return false
		}
		at := v.sightings[i].at
		defer func() { spoke = at }()
		if pk.Ack {
			return false
		}
		e := packets[pk.ID]
		if e == nil {
			packets[pk.ID] = &packet{at: at, most: time.Hour}
			return false
		}
		e.least = max(e.least, spoke.Sub(e.at)-srdpTimer)
		e.most = min(e.most, at.Sub(e.at)+srdpTimer/5)
		e.at = at
		return e.least > e.most
	})
}

// srdpAcked: the endpoint does not resend a packet whose acknowledgement it has
// read. Its own acknowledgements of later packets show that it has read it.
func srdpAcked(_ *testing.T, v *view) uint64 {
	acked := map[uint16]int{} // the arrival that acked a packet
	var open []int
	var ids []uint16
	times := []machine.Instant{0}
	sent, read := map[uint16]bool{}, 0
	return v.srdp(func(i int, pk *wire.Packet) bool {
		at := v.sightings[i].at
		switch own := v.sightings[i].own; {
		case !own:
			times = append(times, at)
			if n := len(times) - 1; !pk.Ack {
				open, ids = append(open, n), append(ids, pk.ID)
			} else if acked[pk.ID] == 0 {
				acked[pk.ID] = n
			}
		case pk.Ack:
			for k, id := range ids {
				if id == pk.ID {
					read = max(read, open[k])
					open, ids = open[k+1:], ids[k+1:]
					break
				}
			}
		case sent[pk.ID]:
			n := acked[pk.ID]
			return n > 0 && (read > n || at.Sub(times[n]) > readWithin)
		default:
			sent[pk.ID] = true
		}
		return false
	})
}

// srdpOrder: when a later packet that keeps order has been sent, the earlier
// one was acknowledged or given up. It is not sent again.
func srdpOrder(_ *testing.T, v *view) uint64 {
	p := wire.Default()
	sent, newest := map[uint16]bool{}, uint16(0)
	return v.srdp(func(i int, pk *wire.Packet) bool {
		if !v.sightings[i].own || pk.Ack || pk.Flags&p.Order == 0 {
			return false
		}
		if sent[pk.ID] {
			return pk.ID != newest
		}
		sent[pk.ID], newest = true, pk.ID
		return false
	})
}

// srdpMarked: an id has 15 bits. The top bit marks acknowledgements.
func srdpMarked(_ *testing.T, v *view) uint64 {
	p := wire.Default()
	for i, x := range v.sightings {
		if x.own && len(x.b) > 3 && x.b[0] == p.DataCommand && x.b[1]&0x80 != 0 {
			return v.frames[i]
		}
	}
	return 0
}

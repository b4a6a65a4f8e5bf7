package messages

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// repeatsMost is how many repeats of one side are kept. When there are more, every
// second one is dropped.
// Source: bound, the repeats that are kept
const repeatsMost = 1024

// unevenFrames says by which part of a frame the times of a sender away from the tap may
// be off.
// Source: unmeasured, the policy of a sender away from the tap decides no divergence
const unevenFrames = 4

// ResendEvidence collects what the packets of one side show of its resend policy. For
// example, message 7 is in packets 20 and 22, and packet 21 had room for it:
//
//	packet   20   21   22
//	message   7         7
//	time      0   17   33 ms
//
// So message 7 was not due yet after 17 ms, and it was due after 33 ms.
type ResendEvidence struct {
	last     passedPacket
	begun    bool
	late     bool  // the packet being read came after one with a larger number
	unbroken int64 // all packets from this number on have passed the tap, in order
	bits     int   // of the longest message section
	bytes    int   // of the longest packet

	near    bool // the tap is at the sender
	repeats []repeat
	total   uint64 // repeats that were measured, with those that were dropped
	every   uint64 // one of so many repeats is kept
	open    int    // the newest repeats, whose RTT is not entered yet

	quiet      []quiet // of messages that were acked after their first send
	quietTotal uint64
	quietEvery uint64 // one of so many is kept

	rtts rttHistory // of the sender

	// What the repeats show, and the total by then. Running and Infer keep their own, so
	// that a look at the state does not change what is reported.
	running, latest     *ResendInference
	runningOf, latestOf uint64
}

// passedPacket is a packet that passed the tap.
type passedPacket struct {
	number      int64
	at          machine.Instant
	bits, bytes int
	full        bool // it carried as many messages as a packet may
}

// repeat is one message that went out again: its wait was more than over and at most
// within.
type repeat struct {
	over, within time.Duration
	rtt          time.Duration // smoothed RTT of the sender; 0 if unknown
	nth          int           // which repeat of the message it is, from 1
}

// quiet is one message that was acked and did not go out again: its wait was more than
// over.
type quiet struct{ over, rtt time.Duration }

// acked measures a message whose sender, at the tap, has just read the ack of it.
func (e *ResendEvidence) acked(s *sends, n int) {
	if !e.near || !s.counted || s.count != 1 || len(e.rtts) == 0 || !e.hadRoom(n) {
		return
	}
	if e.quietTotal++; e.quietTotal%e.quietEvery != 0 {
		return
	}
	if len(e.quiet) == repeatsMost {
		for i := range repeatsMost / 2 {
			e.quiet[i] = e.quiet[2*i]
		}
		e.quiet, e.quietEvery = e.quiet[:repeatsMost/2], 2*e.quietEvery
	}
	e.quiet = append(e.quiet, quiet{max(0, e.last.at.Sub(s.lastAt)), e.rtts[len(e.rtts)-1].most})
}

// begin takes the next packet before its messages are read.
func (e *ResendEvidence) begin(k *Carrier) {
	e.late = e.begun && k.Sequence64 <= e.last.number
	switch {
	case !e.begun:
		e.begun, e.unbroken, e.every, e.quietEvery = true, k.Sequence64, 1, 1
	case e.late:
		e.unbroken = e.last.number + 1
	case k.Sequence64 > e.last.number+1:
		e.unbroken = k.Sequence64
	}
	e.near = k.Near
}

// unbrokenFrom reports whether all packets from a number on have passed the tap, in order.
func (e *ResendEvidence) unbrokenFrom(number int64) bool { return !e.late && e.unbroken <= number }

// repeated measures a message of n bits that a packet carries again. tick is the
// sender's frame time, 0 if unknown.
func (e *ResendEvidence) repeated(s *sends, k *Carrier, n int) {
	if e.late || s.number < e.unbroken {
		s.counted = false // a packet that did not pass may have carried it
	}
	if !s.counted {
		return
	}
	e.total++
	if e.total%e.every != 0 || len(e.repeats) >= 2*repeatsMost {
		return
	}
	r := repeat{within: k.At.Sub(s.lastAt), nth: s.count}
	if e.last.number >= s.number && e.hadRoom(n) {
		r.over = max(0, e.last.at.Sub(s.lastAt))
	}
	if frames := k.Sequence64 - s.number; !k.Near && k.Tick > 0 {
		// The network changed the times between the packets. The sender sends one packet a
		// frame, so its numbers count its frames.
		// Its frames may be uneven.
		r.over = min(r.over, time.Duration(frames-1)*k.Tick-k.Tick/unevenFrames)
		r.within = max(r.within, time.Duration(frames)*k.Tick+k.Tick/unevenFrames)
	}
	e.repeats = append(e.repeats, r)
	e.open++
}

// hadRoom reports whether the packet before could have carried n more bits of messages.
// Packets as large as that passed.
func (e *ResendEvidence) hadRoom(n int) bool {
	return !e.last.full && e.last.bits+n <= e.bits && e.last.bytes+(n+7)/8 <= e.bytes
}

// end takes the same packet after its messages were read. Its section has so many bits.
func (e *ResendEvidence) end(k *Carrier, section *wire.Messages, full bool) {
	if e.late {
		return
	}
	bits := section.Pos()
	e.last = passedPacket{number: k.Sequence64, at: k.At, bits: bits, bytes: k.Length, full: full}
	e.bits, e.bytes = max(e.bits, bits), max(e.bytes, k.Length)
	if len(e.repeats) > repeatsMost {
		kept := e.repeats[:0]
		for i := range e.repeats {
			if i%2 == 0 || i >= len(e.repeats)-e.open {
				kept = append(kept, e.repeats[i])
			}
		}
		e.repeats, e.every = kept, 2*e.every
	}
}

// WantsRTT reports whether the packet that was just read needs the sender's RTT.
func (e *ResendEvidence) WantsRTT() bool { return e.near || e.open > 0 }

// EnterRTT enters the sender's smoothed RTT as of the packet that was just read; 0 or
// less if it has none.
func (e *ResendEvidence) EnterRTT(rtt time.Duration, at machine.Instant) {
	for i := len(e.repeats) - e.open; i < len(e.repeats); i++ {
		e.repeats[i].rtt = max(rtt, 0)
	}
	e.open = 0
	if rtt > 0 {
		e.rtts.enter(rtt, at)
	}
}

// Infer returns what the repeats so far show.
func (e *ResendEvidence) Infer() *ResendInference {
	if n := e.total + e.quietTotal; e.latest == nil || e.latestOf != n {
		e.latest, e.latestOf = e.infer(), n
	}
	return e.latest
}

// Running is Infer for each packet of a capture: it computes anew only when the repeats
// have doubled. It returns nil before the first time.
func (e *ResendEvidence) Running() *ResendInference {
	if n := e.total + e.quietTotal; n >= 2*max(e.runningOf, resendTells) {
		e.running, e.runningOf = e.infer(), n
	}
	return e.running
}

func (e *ResendEvidence) clone() *ResendEvidence {
	if e == nil {
		return nil
	}
	c := *e
	c.quiet = slices.Clone(e.quiet)
	c.repeats, c.rtts = slices.Clone(e.repeats), e.rtts.clone()
	return &c
}

func (e *ResendEvidence) size() int {
	if e == nil {
		return 0
	}
	return 250 + cap(e.repeats)*32 + cap(e.rtts)*24 + cap(e.quiet)*16
}

// spread is the least agreement of a value within the bounds of a policy, as a share of
// the best one.
func (e *ResendEvidence) spread() float64 {
	if e.near {
		return resendSpread
	}
	return farSpread
}

// rttSlack is the share by which the RTT of repeats may be off.
func (e *ResendEvidence) rttSlack() float64 {
	if e.near {
		return nearRTTSlack
	}
	return farRTTSlack
}

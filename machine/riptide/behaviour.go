package riptide

import (
	"slices"
	"time"

	wire "github.com/ackscope/ackscope/wire/riptide"
)

// ReceiveRule is how a receiver remembers the ids that it has received.
type ReceiveRule uint8

const (
	ReceiveList       ReceiveRule = iota // a list of bits behind the newest id, of any length
	ReceiveWindow                        // 16 bits for acks and 64 bits for older ids (release 2.0.0)
	ReceiveNotes                         // the window as the notes describe it: the newest id follows every jump up to 80
	ReceiveEverything                    // no filter: every copy is delivered, and only Welcome is acked (Pytide 2.0.0)
)

// SendRule is what a sender concludes from an Ack. Under every rule the id that the Ack answers
// counts as delivered.
type SendRule uint8

const (
	SendBits      SendRule = iota // bits of a newer Ack clear the ids that they name (2.1.0 and later)
	SendOlderBits                 // they clear only ids older than the newest id acked before (2.1-dev)
	SendOldestBit                 // ids are cleared as they reach the oldest of 16 bits (2.0.0)
	SendNotes                     // the same, and an Ack older than the newest adds its 16 bits as they are (the notes)
	SendCauseOnly                 // bits clear nothing (Pytide 2.0.0)
	SendReceived                  // bits clear what they name, counted from the newest id received (Pytide 2.1.0-alpha)
)

// Behaviour is how one version of the library, or of its port to Python, really behaves.
type Behaviour struct {
	Name string
	Doc  string

	// Window names the versions of the same dialect that share this window of received ids. A fault of
	// the window proves that a side is one of them.
	Window string

	Receive ReceiveRule
	Send    SendRule

	// OneSequence is set where every reliable message has the first id. Then no message counts as a
	// copy of another.
	OneSequence bool

	// Port is set for Pytide, the port to Python.
	Port bool

	// First is the sequence id of a side's first reliable message.
	First uint16

	// ShiftFault is the library's fault at jumps of 32 and more. Whole words of bits stay where they
	// are, and then name other, newer ids.
	ShiftFault bool

	// WindowMost is how many ids behind the newest one the receiver's list can hold. When an id that
	// never came falls out of it, the connection ends. 0: as many as there are.
	WindowMost int

	// MergedSequences is set where a message to several peers carries their sequence ids OR-ed
	// together.
	MergedSequences bool

	// Limit is the largest number of copies of one message. When one more is due, DropsConnection
	// decides what happens: the connection ends, or the sender only forgets the message. Limit 0: sent
	// once.
	Limit           int
	DropsConnection bool

	// LooseTimers is set where the library's timers can fire late, as they did until August 2026. Its
	// timer heap moves the last entry to a wrong place. With six or more timers, one can wait behind
	// others that are due later.
	LooseTimers bool

	// QualityLimits is set where an average number of sends or a share of lost notify messages can end
	// the connection (2.1.0 and later).
	QualityLimits bool

	// MessageLimit is the default limit for the number of reliable messages of a connection. The next
	// message ends the connection. 0: no limit.
	MessageLimit int

	// NoNotify is set where the library throws at every notify message that arrives.
	NoNotify bool

	// NoTimeout is set where a silent peer never times out.
	NoTimeout bool
}

// Times that all versions share.
const (
	// HeartbeatInterval is the time between two heartbeats of a side.
	// Source: library, Riptide 2.0.0 to 2.2.1: Peer.HeartbeatInterval
	HeartbeatInterval = time.Second
	// Timeout is how long a peer may stay silent. It counts from the last heartbeat, Welcome or
	// Connect.
	// Source: library, Riptide 2.0.0 to 2.2.1: Peer.TimeoutTime
	Timeout = 5 * time.Second
	// ConnectAttempts is how many times a client sends Connect.
	// Source: library, Riptide 2.0.0 to 2.2.1: maxConnectionAttempts of Client.Connect
	ConnectAttempts = 5

	// ResendUnknown is the resend time while no RTT is known.
	// Source: library, Riptide 2.0.0 to 2.2.1: the resend time of a message while no RTT is known
	ResendUnknown = 50 * time.Millisecond
	// ResendLeast is the shortest resend time of a message.
	// Source: library, Riptide 2.0.0 to 2.2.1: the least resend time of a message
	ResendLeast = 10 * time.Millisecond
)

// windowMain is how many received ids the library remembers since commit ac64e14.
// Source: library, Riptide main (ac64e14, August 2026): Bitfield.MaxSegments, 32 segments of 32 bits
const windowMain = 32 * wordBits

// Behaviours lists all of them, the oldest first.
var Behaviours = []*Behaviour{
	{
		Name: "riptide@notes", First: 1, Window: "what was written from the notes",
		Doc: "as the Riptide Networking Notes tell it", Receive: ReceiveNotes, Send: SendNotes, Limit: 15,
	},
	{
		Name: "riptide@2.0", First: 1, Window: "release 2.0.0",
		Doc:     "release 2.0.0: the newest id stays where it is at jumps of 17 to 80, beyond 80 there is no filter",
		Receive: ReceiveWindow, Send: SendOldestBit, Limit: 15,
	},
	{
		Name: "riptide@dev-d", First: 1, Window: "source builds of February to July 2023",
		Doc: "source builds of February to July 2023", Send: SendOlderBits, ShiftFault: true, Limit: 15, LooseTimers: true,
	},
	{
		Name: "riptide@dev-n", First: 1, Window: "source builds of July to November 2023",
		Doc: "source builds of July to November 2023", Send: SendOlderBits, ShiftFault: true, Limit: 15,
		DropsConnection: true, QualityLimits: true, LooseTimers: true,
	},
	{
		Name: "riptide@2.1.0", First: 1, Window: "releases 2.1.0 to 2.2.1",
		Doc: "release 2.1.0: shift fault, and sequence ids OR-ed on sends to several", ShiftFault: true,
		MergedSequences: true, Limit: 15, DropsConnection: true, QualityLimits: true, LooseTimers: true,
	},
	{
		Name: "riptide@2.1.1-2.2.1", First: 1, Window: "releases 2.1.0 to 2.2.1", Doc: "releases 2.1.1 to 2.2.1: shift fault",
		ShiftFault: true, Limit: 15, DropsConnection: true, QualityLimits: true, LooseTimers: true,
	},
	{
		Name: "riptide@main", First: 1, Window: "the library after August 2026",
		Doc: "main from 12 August 2026 (528d1d0) to 19 August 2026 (bc3f3f2): no shift fault, timers in order, " +
			"1024 received ids at most",
		Limit: 15, DropsConnection: true, QualityLimits: true, WindowMost: windowMain,
	},
	{
		Name: "pytide@2.0", Port: true, OneSequence: true, First: 1, Window: "Pytide 2.0.0",
		Doc:     "Pytide 2.0.0: every reliable message has id 1, only Welcome is acked, nothing is sent again",
		Receive: ReceiveEverything, Send: SendCauseOnly,
	},
	{
		Name: "pytide@2.1-alpha", Port: true, First: 2, Window: "Pytide 2.1.0-alpha",
		Doc: "Pytide 2.1.0-alpha: a list without the shift fault; lost is lost", Send: SendReceived, QualityLimits: true,
		MessageLimit: 15, NoNotify: true, NoTimeout: true,
	},
}

// LookupBehaviour returns the behaviour with a name, or nil.
func LookupBehaviour(name string) *Behaviour {
	for _, b := range Behaviours {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// Number returns the index in Behaviours. Findings carry it as a figure.
func (b *Behaviour) Number() float64 { return float64(slices.Index(Behaviours, b)) }

// windowOf returns the versions that share a window. number is an index in Behaviours, from a
// finding.
func windowOf(number float64) string {
	if i := int(number); i >= 0 && i < len(Behaviours) {
		return Behaviours[i].Window
	}
	return "unknown versions"
}

// What BehaviourOf chooses from. It is asked for every message, so each build is a set of one.
var (
	pytide20   = only("pytide-2.0.0")
	pytide21   = only("pytide-2.1.0-alpha")
	riptide210 = only("2.1.0")

	likeNotes    = LookupBehaviour("riptide@notes")
	like20       = LookupBehaviour("riptide@2.0")
	likePytide20 = LookupBehaviour("pytide@2.0")
	likeDevD     = LookupBehaviour("riptide@dev-d")
	likeDevN     = LookupBehaviour("riptide@dev-n")
	like210      = LookupBehaviour("riptide@2.1.0")
	likePytide21 = LookupBehaviour("pytide@2.1-alpha")
	likeLater    = LookupBehaviour("riptide@2.1.1-2.2.1")
)

// only returns the set of one build.
func only(name string) wire.BuildSet {
	return wire.Matching(func(b *wire.Build) bool { return b.Name == name })
}

// BehaviourOf returns the behaviour of an end that can be any build of a set. Where the builds
// differ, it returns that of the most widely used one.
func BehaviourOf(d *wire.Dialect, builds wire.BuildSet) *Behaviour {
	switch d {
	case wire.Notes:
		return likeNotes
	case wire.V20:
		if builds == pytide20 {
			return likePytide20
		}
		return like20
	case wire.DevD:
		return likeDevD
	case wire.DevN:
		return likeDevN
	}
	switch {
	case builds == pytide21:
		return likePytide21
	case builds&riptide210 != 0:
		return like210
	}
	return likeLater
}

// ResendAfter returns the time from one copy of an unacked message to the next. Its argument is the
// smoothed RTT in whole milliseconds; a negative one means that none is known. The library checks
// once per tick of the application, so the real time is rounded up to a tick.
func ResendAfter(smoothed int) time.Duration {
	if smoothed < 0 {
		return ResendUnknown
	}
	return max(ResendLeast, time.Duration(float64(smoothed)*1.2)*time.Millisecond)
}

// Smooth returns the library's next smoothed RTT in whole milliseconds. Before the first sample,
// smoothed is negative.
func Smooth(smoothed, sample int) int {
	if smoothed < 0 {
		return sample
	}
	return max(1, int(float32(smoothed)*0.7+float32(sample)*0.3))
}

// Misread returns the least jump of the newest acked id at which a sender misreads an Ack.
func (b *Behaviour) Misread() int {
	if b.Send == SendOlderBits {
		return WindowAcks + 1 // the library's mask wraps round
	}
	return JumpList
}

// The least jumps of the newest id after which a receiver's Acks no longer show what arrived.
const (
	JumpList   = wordBits
	jumpWindow = WindowAcks + 1
)

// Jump returns the least jump of the newest id that corrupts the behaviour's window.
func (b *Behaviour) Jump() int {
	if b.Receive == ReceiveWindow {
		return jumpWindow
	}
	return JumpList
}

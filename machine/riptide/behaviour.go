package riptide

import (
	"slices"
	"time"

	wire "github.com/ackscope/ackscope/wire/riptide"
)

// ReceiveRule says how a receiver keeps what it has received.
type ReceiveRule uint8

const (
	ReceiveList       ReceiveRule = iota // an unlimited list of bits behind the newest id
	ReceiveWindow                        // 16 bits for acks and 64 older ones (release 2.0.0)
	ReceiveNotes                         // the same as the notes tell it: the newest id follows every jump up to 80
	ReceiveEverything                    // no filter: every copy is handed over, only Welcome is acked (Pytide 2.0.0)
)

// SendRule says what a sender makes of an Ack, apart from clearing the id that
// the Ack answers.
type SendRule uint8

const (
	SendBits      SendRule = iota // bits of a newer Ack clear what they name (2.1.0 and later)
	SendOlderBits                 // they clear only ids older than the newest acked before (2.1-dev)
	SendOldestBit                 // ids are cleared as they reach the oldest of 16 bits (2.0.0, and the notes)
	SendCauseOnly                 // bits clear nothing (Pytide 2.0.0)
	SendReceived                  // bits clear what they name, counted from the newest id received (Pytide 2.1.0-alpha)
)

// Behaviour is how one state of the library, or of its port, really behaves.
type Behaviour struct {
	Name string
	Doc  string

	// Window names the versions that have the same window of received ids, in the
	// same dialect: what a fault of the window proves.
	Window string

	Receive ReceiveRule
	Send    SendRule

	// OneSequence is set where every reliable message has the first id, so that
	// none is a copy of another.
	OneSequence bool

	// Port is set for Pytide, the port to Python.
	Port bool

	// First is the first sequence id of a side.
	First uint16

	// ShiftFault is the fault of the list at jumps of 32 and more: whole words of
	// bits stay where they are and then stand for other, newer ids.
	ShiftFault bool

	// MergedSequences is set where a message to several peers goes out with their
	// sequence ids OR-ed.
	MergedSequences bool

	// Limit is how often a message is sent at most. When one more would be due,
	// DropsConnection tells whether the connection ends or only the message is
	// forgotten. Limit 0: sent once.
	Limit           int
	DropsConnection bool

	// LooseTimers is set where timers stand in a heap that takes its last entry to
	// where it does not belong, as the library's did until August 2026: with six or
	// more of them, one can be held back behind others that are due later.
	LooseTimers bool

	// Averages, notify loss: the quality limits of 2.1.0 and later.
	QualityLimits bool

	// MessageLimit is how many reliable messages can be sent in all, by default;
	// the next one ends the connection. 0: any number.
	MessageLimit int

	// NoNotify is set where every notify message that arrives makes the library throw.
	NoNotify bool

	// NoTimeout is set where the timeout never strikes.
	NoTimeout bool
}

// Times that all states share.
const (
	HeartbeatInterval = time.Second
	Timeout           = 5 * time.Second // since the last heartbeat, Welcome or Connect
	ConnectAttempts   = 5

	ResendUnknown = 50 * time.Millisecond // while no RTT is known
	ResendLeast   = 10 * time.Millisecond
)

// Behaviours lists them, the oldest first.
var Behaviours = []*Behaviour{
	{Name: "riptide@notes", First: 1, Window: "what was written from the notes",
		Doc: "as the Riptide Networking Notes tell it", Receive: ReceiveNotes, Send: SendOldestBit, Limit: 15},
	{Name: "riptide@2.0", First: 1, Window: "release 2.0.0",
		Doc:     "release 2.0.0: the newest id stays where it is at jumps of 17 to 80, beyond 80 there is no filter",
		Receive: ReceiveWindow, Send: SendOldestBit, Limit: 15},
	{Name: "riptide@dev-d", First: 1, Window: "source builds of February to July 2023",
		Doc: "source builds of February to July 2023", Send: SendOlderBits, ShiftFault: true, Limit: 15, LooseTimers: true},
	{Name: "riptide@dev-n", First: 1, Window: "source builds of July to November 2023",
		Doc: "source builds of July to November 2023", Send: SendOlderBits, ShiftFault: true, Limit: 15,
		DropsConnection: true, QualityLimits: true, LooseTimers: true},
	{Name: "riptide@2.1.0", First: 1, Window: "releases 2.1.0 to 2.2.1",
		Doc: "release 2.1.0: shift fault, and sequence ids OR-ed on sends to several", ShiftFault: true,
		MergedSequences: true, Limit: 15, DropsConnection: true, QualityLimits: true, LooseTimers: true},
	{Name: "riptide@2.1.1-2.2.1", First: 1, Window: "releases 2.1.0 to 2.2.1", Doc: "releases 2.1.1 to 2.2.1: shift fault",
		ShiftFault: true, Limit: 15, DropsConnection: true, QualityLimits: true, LooseTimers: true},
	{Name: "riptide@main", First: 1, Window: "the library after August 2026",
		Doc: "the library after August 2026: without the shift fault, its timers in order", Limit: 15, DropsConnection: true,
		QualityLimits: true},
	{Name: "pytide@2.0", Port: true, OneSequence: true, First: 1, Window: "Pytide 2.0.0",
		Doc:     "Pytide 2.0.0: every reliable message has id 1, only Welcome is acked, nothing is sent again",
		Receive: ReceiveEverything, Send: SendCauseOnly},
	{Name: "pytide@2.1-alpha", Port: true, First: 2, Window: "Pytide 2.1.0-alpha",
		Doc: "Pytide 2.1.0-alpha: a list without the shift fault; lost is lost", Send: SendReceived, QualityLimits: true,
		MessageLimit: 15, NoNotify: true, NoTimeout: true},
}

// LookupBehaviour finds one by its name; nil for none.
func LookupBehaviour(name string) *Behaviour {
	for _, b := range Behaviours {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// Number returns its place among Behaviours, for the figures of a finding.
func (b *Behaviour) Number() float64 { return float64(slices.Index(Behaviours, b)) }

// windowOf names the versions that a window's fault proves, by such a figure.
func windowOf(number float64) string {
	if i := int(number); i >= 0 && i < len(Behaviours) {
		return Behaviours[i].Window
	}
	return "unknown versions"
}

// BehaviourOf returns the behaviour of an end that can be any of the builds:
// where they differ, that of the most widely used.
func BehaviourOf(d *wire.Dialect, builds wire.BuildSet) *Behaviour {
	is := func(name string) bool {
		b, _ := wire.LookupBuild(name)
		return builds.Single() && builds.Has(b)
	}
	name := "riptide@2.1.1-2.2.1"
	switch d {
	case wire.Notes:
		name = "riptide@notes"
	case wire.V20:
		name = "riptide@2.0"
		if is("pytide-2.0.0") {
			name = "pytide@2.0"
		}
	case wire.DevD:
		name = "riptide@dev-d"
	case wire.DevN:
		name = "riptide@dev-n"
	default:
		first, _ := wire.LookupBuild("2.1.0")
		switch {
		case is("pytide-2.1.0-alpha"):
			name = "pytide@2.1-alpha"
		case builds.Has(first):
			name = "riptide@2.1.0"
		}
	}
	return LookupBehaviour(name)
}

// ResendAfter returns the time after which a message that was not acked is due
// again, at a smoothed RTT in whole milliseconds (negative: none yet). The
// library looks once per tick of the application, so it is rounded up to that.
func ResendAfter(smoothed int) time.Duration {
	if smoothed < 0 {
		return ResendUnknown
	}
	return max(ResendLeast, time.Duration(float64(smoothed)*1.2)*time.Millisecond)
}

// Smooth returns the library's next smoothed RTT in whole milliseconds; before the
// first sample it is negative.
func Smooth(smoothed, sample int) int {
	if smoothed < 0 {
		return sample
	}
	return max(1, int(float32(smoothed)*0.7+float32(sample)*0.3))
}

// Misread returns the least jump of the newest acked id of which a sender makes
// something else than its Acks say.
func (b *Behaviour) Misread() int {
	if b.Send == SendOlderBits {
		return WindowAcks + 1 // its mask wraps round
	}
	return JumpList
}

// Jumps of the newest id at which what a receiver acks is no more what came.
const (
	JumpList   = wordBits
	jumpWindow = WindowAcks + 1
)

// Jump returns the least jump of the newest id that the behaviour's window does not stand.
func (b *Behaviour) Jump() int {
	if b.Receive == ReceiveWindow {
		return jumpWindow
	}
	return JumpList
}

package riptide

import "time"

// UsualTick is the frame time of a game about which nothing is known.
// Source: measured, TestMarginsRiptide
const UsualTick = time.Second / 60

// QueueMost bounds a side's arrivals that wait for an Ack to prove that they were read.
// Source: bound, the arrivals that wait
const QueueMost = 1 << 14

// Bounds of what a view draws.
const (
	// Source: bound, the ids that a view draws
	ViewIDs = 64
	// Source: bound, the rows that a view draws
	ViewRows = 64
)

// Why a library ended a connection for its quality.
const (
	NotDropped = iota
	DroppedAttempts
	DroppedNotify
	DroppedSends
	DroppedCount
)

const (
	// TickSlack bounds the time from a side's last read to its next send: a generous tick of the
	// application.
	// Source: measured, TestMarginsRiptide
	TickSlack = 40 * time.Millisecond
	// silenceSlack is how much later than due a heartbeat, or its answer, may come.
	// Source: measured, TestMarginsRiptide
	silenceSlack = 200 * time.Millisecond
	// Silence is how long a side can read on after its last message. Its next heartbeat or answer is
	// due within a second.
	Silence = HeartbeatInterval + silenceSlack
)

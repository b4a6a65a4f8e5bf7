package riptide

import "time"

// UsualTick is the frame of a game of which nothing is known.
// Source: measured, TestMarginsRiptide
const UsualTick = time.Second / 60

// QueueMost bounds the arrivals of a side that wait for the Ack that shows them read.
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
	// TickSlack is how long before something that a side sends it can have read
	// for the last time: a tick of the application, generously.
	// Source: measured, TestMarginsRiptide
	TickSlack = 40 * time.Millisecond
	// silenceSlack is how much later than due a heartbeat, or its answer, may come.
	// Source: measured, TestMarginsRiptide
	silenceSlack = 200 * time.Millisecond
	// Silence is how long after its last message a side that says nothing may
	// still be reading: its next heartbeat or answer is due within a second.
	Silence = HeartbeatInterval + silenceSlack
)

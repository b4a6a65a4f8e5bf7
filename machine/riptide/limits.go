package riptide

import "time"

// UsualTick is the frame time of a game about which nothing is known.
// Source: measured, TestMarginsRiptide
const UsualTick = time.Second / 60

// QueueMost is how many arrivals of a side can wait for an Ack that proves that they were read.
// Source: bound, the arrivals that wait
const QueueMost = 1 << 14

// Bounds of what a view draws.
const (
	// ViewIDs is how many ids a window of a view draws.
	// Source: bound, the ids that a view draws
	ViewIDs = 64
	// ViewRows is how many rows a table of a view draws.
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
	DroppedWindow
)

const (
	// TickSlack is the longest time from a side's last read to its next send. It allows for a generous
	// tick of the application.
	// Source: measured, TestMarginsRiptide
	TickSlack = 40 * time.Millisecond
	// silenceSlack is how much later than due a heartbeat or its answer may come.
	// Source: measured, TestMarginsRiptide
	silenceSlack = 200 * time.Millisecond
	// Silence is how long a side can read on after its last message. Its next heartbeat or answer is
	// due within a second.
	Silence = HeartbeatInterval + silenceSlack
)

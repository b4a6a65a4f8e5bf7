package riptide

import "time"

// UsualTick is the frame of a game of which nothing is known.
const UsualTick = time.Second / 60

// QueueMost bounds the arrivals of a side that wait for the Ack that shows them read.
const QueueMost = 1 << 14

// Bounds of what a view draws.
const (
	ViewIDs  = 64
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
	TickSlack = 40 * time.Millisecond
	// Silence is how long after its last message a side that says nothing may
	// still be reading: its next heartbeat or answer is due within a second.
	Silence = 1200 * time.Millisecond
)

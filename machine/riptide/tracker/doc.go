// Package tracker rebuilds from a capture what both ends of a Riptide connection knew: their
// messages, their windows of ids, the connection and its heartbeats.
//
// Example: A's message 7 passes the tap in frame 20, and an Ack of it in frame 24. The tracker then
// reports that B received the message, shown by frame 20 or 24, and that A counts it as acked.
//
// A Tracker works in two steps:
//
//  1. It holds messages until they show where the tap is (opening.go).
//  2. It then gives each message to a follower, as a step (follower.go, step.go).
//
// The follower's parts are in these files:
//
//	side.go                what is known of one end, in groups
//	life.go                what is known of one message; lives.go keeps those of a side
//	witness.go             a side at the tap: it reads in order, and its Acks prove what it read
//	evidence.go            a side away from the tap: only its own Acks show what it has
//	connection.go          who asked, who was let in, who left
//	connection_events.go   what each library then reports; heartbeat.go, the pings
//	tap.go                 how surely the tap is at a side
//
// Three packages help: vantage finds where the tap is, pathloss what the path lost, and clock how a
// client's clock counts.
package tracker

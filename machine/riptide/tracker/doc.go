// Package tracker rebuilds from a capture what both ends of a Riptide connection knew: the
// life of each message, the windows of ids, the connection and its heartbeats.
//
// Example: A's message 7 passes the tap in frame 20, and an Ack of it in frame 24. Its
// life then says that B received it, by frame 20 or 24, and that A counts it as acked.
//
// A Tracker holds messages back until they show where the tap stood (opening.go). Then a
// follower takes each as a step (follower.go, step.go):
//
//	side.go         what is known of one end, in groups
//	life.go         what is known of one message; lives.go keeps those of a side
//	witness.go      a side at the tap reads what passes it in order, and each of its
//	                Acks shows what it had read
//	evidence.go     a side away from the tap is known by its own Acks
//	connection.go   who asked, who was let in, who left; heartbeat.go, lifecycle.go
//
// Where the tap stood, what the path lost and how a client's clock counts are found by
// the packages vantage, pathloss and clock.
package tracker

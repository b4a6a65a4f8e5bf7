// Package tracker rebuilds from a capture what both ends of a Riptide connection knew: the
// life of each message, the windows of ids, the connection and its heartbeats.
//
// A side at the tap reads what passes it in order, and each Ack that it sends shows
// what it had read (witness.go). A side away from the tap is known by its own Acks
// (evidence.go). follower.go drives both over one flow.
package tracker

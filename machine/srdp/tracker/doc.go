// Package tracker rebuilds from a capture what both ends of an SRDP flow knew: the life of each
// packet, the queues, what was promised to whom. A Scope (counter.go) follows the one
// counter of packet ids that an endpoint has for all of its peers.
package tracker

// Package srdp holds the state and the transitions of an endpoint of the
// Scalable Reliable Datagram Protocol. An example is the sent queue:
//
//	sent queue, by retry time                     recently received, per source
//	+------+------+------+------+                 +-----+-----+-----+
//	| 5    | 9    | 7    | 10   |  one timer,     | 311 | 312 | 315 |  an id of the list
//	| 2 of3| 1    | 1    | 1    |  set to the     +-----+-----+-----+  is a duplicate
//	| @40ms| @52ms| @60ms| @61ms|  head's time
//	+------+------+------+------+
//	   ^ an acknowledgement takes any of them out
//
// All transitions are in Queue (state.go) and Received (received.go). Two kinds
// of driver use them:
//
//   - The reference (package endpoint) decides what to send.
//   - The tracker (package tracker) reads off a capture what two endpoints must
//     have done.
//
// An endpoint has one counter of packet ids for all of its peers. A flow's ids
// therefore have gaps where the endpoint sent to others.
//
// The source is the document of 1995, "Scalable Reliable Datagram Protocol" by
// Worlds Inc. What it leaves open is an option, or a field of Profile in
// wire/srdp, with a default.
package srdp

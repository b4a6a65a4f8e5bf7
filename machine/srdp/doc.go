// Package srdp holds what an endpoint of the Scalable Reliable Datagram Protocol
// knows, and how it comes to know it: the sent queue, the lists of ids received,
// the delays observed.
//
//	sent queue, by retry time                     recently received, per source
//	+------+------+------+------+                 +-----+-----+-----+
//	| 5    | 9    | 7    | 10   |  one timer,     | 311 | 312 | 315 |  an id of the list
//	| 2 of3| 1    | 1    | 1    |  set to the     +-----+-----+-----+  is a duplicate
//	| @40ms| @52ms| @60ms| @61ms|  head's time
//	+------+------+------+------+
//	   ^ an acknowledgement takes any of them out
//
// Queue (state.go) and Received (received.go) are the one transition code. Two
// kinds of driver share them: the reference (Endpoint and the proxies) decides
// what to send; the tracker reads off a capture what two endpoints must have
// done.
//
// An endpoint has one counter of packet ids for all of its peers: a flow's ids
// have gaps where the endpoint spoke to others.
//
// Source of truth: "Scalable Reliable Datagram Protocol", Worlds Inc, 1995. What
// it leaves open is an option or a field of wire/srdp's Profile, with a default.
package srdp

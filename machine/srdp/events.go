package srdp

import "github.com/ackscope/ackscope/machine"

// SRDP uses the shared events as follows:
//
//   - sent is a packet's first copy, and resent each further copy;
//   - received is a copy that was handed to the application;
//   - duplicate is a copy that was acknowledged and dropped;
//   - acked is the acknowledgement that took the packet out of the sent queue.
//
// Sequence is the packet id.
//
// No capture shows when a sender gives a packet up. A capture's acked is the
// first acknowledgement that the sender reads. A sender that had given the
// packet up by then calls the same acknowledgement acked again.
const (
	// EventGaveUp: Side removed its packet Sequence from the sent queue without
	// an acknowledgement. It had sent all copies that were asked for, or the
	// application cancelled the packet.
	EventGaveUp = machine.EventProtocol + iota
	// EventAckedAgain: Side read an acknowledgement of Sequence, which was not
	// in its sent queue. It answers a further copy, or a packet that Side had
	// given up.
	EventAckedAgain
	// EventRTTFromLast and EventRTTFromFirst occur in captures only. When a
	// packet had several copies, its acknowledgement may answer any of them.
	// RTT is then the time since the newest copy, or since the first. Neither
	// is a sample (Karn's rule).
	EventRTTFromLast
	EventRTTFromFirst
)

// EventNames maps these kinds to the words that output uses.
var EventNames = map[machine.EventKind]string{
	EventGaveUp: "gave_up", EventAckedAgain: "acked_again", EventRTTFromLast: "rtt_from_last",
	EventRTTFromFirst: "rtt_from_first",
}

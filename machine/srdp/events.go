package srdp

import "github.com/ackscope/ackscope/machine"

// SRDP uses the shared events so: sent is a packet's first copy and resent each
// further one, received is a copy that was handed over, duplicate one that was
// acknowledged and dropped, acked the acknowledgement that took the packet out
// of the sent queue. Sequence is the packet id.
//
// When a sender gives a packet up shows in no capture. What a capture calls acked
// is the first acknowledgement that the sender reads; one that had given the
// packet up by then calls it acked again.
const (
	// EventGaveUp: Side took its packet Sequence out of the sent queue without an
	// acknowledgement: it was sent as often as it was to be, or given up by the
	// application.
	EventGaveUp = machine.EventProtocol + iota
	// EventAckedAgain: Side read an acknowledgement of Sequence, which was not in
	// its sent queue: of a further copy, or of a packet that it had given up.
	EventAckedAgain
	// EventRTTFromLast and EventRTTFromFirst, of captures only: an acknowledgement
	// of a packet of several copies may answer any of them. RTT is then the time
	// since the newest copy, and since the first; neither is a sample (Karn's rule).
	EventRTTFromLast
	EventRTTFromFirst
)

// EventNames gives their words.
var EventNames = map[machine.EventKind]string{
	EventGaveUp: "gave_up", EventAckedAgain: "acked_again", EventRTTFromLast: "rtt_from_last",
	EventRTTFromFirst: "rtt_from_first",
}

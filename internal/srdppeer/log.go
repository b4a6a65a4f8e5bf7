package srdppeer

import (
	"net/netip"
	"time"
)

// Kind is what happened at an endpoint.
type Kind int

const (
	Sent       Kind   = iota // a first copy
	Resent                   // a later copy
	Acked                    // the first acknowledgement of a packet that waits for one
	AckUnknown               // an acknowledgement of a packet that does not wait for one
	GaveUp                   // the last of Service.Repeats copies was not acknowledged in time
	Received                 // a copy of a data packet
	Answered                 // its acknowledgement
	Delivered                // the payload went to the application
	Duplicate                // not delivered: a second copy with the flag DontDuplicate
	Foreign                  // a datagram of another protocol
	Malformed                // a datagram that begins like SRDP and does not continue so
	Kinds      = iota        // how many kinds there are
)

var kindWords = [...]string{
	"sent", "resent", "acked", "ack-unknown", "gave-up", "received", "answered", "delivered", "duplicate",
	"foreign", "malformed",
}

func (k Kind) String() string { return kindWords[k] }

// Entry is one line of an endpoint's log.
type Entry struct {
	At    time.Duration // since the start of the run
	Kind  Kind
	Peer  netip.AddrPort
	ID    uint16
	Copy  int           // of Sent, Resent, Acked, GaveUp: the number of copies so far
	Flags byte          // of a data packet, also of Acked and GaveUp
	Bytes int           // of a data packet: its payload
	Wait  time.Duration // of Sent and Resent: until the next copy; of Acked: since the first copy
}

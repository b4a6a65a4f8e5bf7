package srdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// What Step answers to a request that cannot be met.
var (
	// ErrNotImplemented is the document's SRDP_NOTIMP: a service was asked for that
	// the implementation does not have.
	ErrNotImplemented = errors.New("service not implemented")
	ErrTooLarge       = errors.New("too many bytes for one packet")
	ErrFull           = errors.New("too many packets wait already")
	ErrUnknownPeer    = errors.New("unknown peer")
)

// Request is a call of srdp_send, but for its source, which is the endpoint.
type Request struct {
	To    machine.Peer
	Bytes []byte
	// Repeats is how often the packet is sent at most; 0 is until it is
	// acknowledged. Beware of 0 to a destination that is dead: see Options.Limit,
	// and CancelOf.
	Repeats uint8
	// Timeout is the time between copies, in whole milliseconds, up to MaxTimeout;
	// 0 leaves it to the endpoint.
	Timeout time.Duration
	// Flags ask for services, as on the wire: wire Profile.DontDuplicate, Profile.Order.
	Flags uint8
}

// MaxTimeout is the longest Request.Timeout.
const MaxTimeout = (1<<24 - 1) * time.Millisecond

// Submit returns the input that makes the call: flags as the channel, repeats in
// the low byte of the type and the timeout in milliseconds above it.
func (r Request) Submit() machine.Submit {
	ms := min(max(r.Timeout, 0), MaxTimeout).Milliseconds()
	if ms == 0 && r.Timeout > 0 {
		ms = 1 // the shortest there is: 0 would mean another thing
	}
	return machine.Submit{To: r.To, Channel: r.Flags, Type: uint32(r.Repeats) | uint32(ms)<<8, Payload: r.Bytes}
}

// RequestOf returns the call that an input makes. Its Bytes are the input's.
func RequestOf(in machine.Submit) Request {
	return Request{To: in.To, Bytes: in.Payload, Repeats: uint8(in.Type),
		Timeout: time.Duration(in.Type>>8) * time.Millisecond, Flags: in.Channel}
}

// CancelOf reads the command that has an endpoint give up what was submitted:
// machine.Cancel with the number of the submission (Endpoint.Submitted), 4 bytes,
// the highest first.
func CancelOf(in machine.Command) (submission uint32, err error) {
	if len(in.Payload) != 4 {
		return 0, fmt.Errorf("cancel: a submission's number has 4 bytes, found %d", len(in.Payload))
	}
	return binary.BigEndian.Uint32(in.Payload), nil
}

// Outcome is how a submission ended.
type Outcome uint8

const (
	Acknowledged Outcome = iota
	Expired              // sent as often as it was to be, or for as long as Options.Limit lets it
	Cancelled            // by machine.Cancel, or with all that was submitted to its peer
)

var outcomeWords = [...]string{"acknowledged", "expired", "cancelled"}

// String returns "acknowledged", "expired" or "cancelled".
func (o Outcome) String() string {
	if int(o) < len(outcomeWords) {
		return outcomeWords[o]
	}
	return "unknown"
}

// Settlement is the end of a submission.
type Settlement struct {
	Submission uint32 // its number
	Peer       machine.Peer
	ID64       int64 // of the packet, unwrapped; -1 where it was never sent
	Outcome    Outcome
	Copies     uint32
	Sample     Sample // where it was acknowledged
}

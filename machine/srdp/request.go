package srdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Step returns these errors for a request that it cannot meet.
var (
	// ErrNotImplemented is the document's SRDP_NOTIMP: the implementation does
	// not have the requested service.
	ErrNotImplemented = errors.New("service not implemented")
	ErrTooLarge       = errors.New("too many bytes for one packet")
	ErrFull           = errors.New("too many packets wait already")
	ErrUnknownPeer    = errors.New("unknown peer")
)

// Request is a call of srdp_send. The call's source is the endpoint itself.
type Request struct {
	To    machine.Peer
	Bytes []byte
	// Repeats is the most copies of the packet; 0 means as many as it takes
	// until it is acknowledged. With 0 and a dead destination this never ends:
	// see Limit of endpoint.Options, and CancelOf.
	Repeats uint8
	// Timeout is the time between copies, in whole milliseconds, up to
	// MaxTimeout. With 0 the endpoint chooses it.
	Timeout time.Duration
	// Flags ask for services, as on the wire: DontDuplicate and Order of the
	// wire Profile.
	Flags uint8
}

// MaxTimeout is the longest Request.Timeout.
// Source: bound, the 24 bits of a Submit's type that hold it
const MaxTimeout = (1<<24 - 1) * time.Millisecond

// Submit returns the input that makes the call. The channel holds the flags.
// The type holds the repeats in its low byte, and the timeout in milliseconds
// above it.
func (r Request) Submit() machine.Submit {
	ms := min(max(r.Timeout, 0), MaxTimeout).Milliseconds()
	if ms == 0 && r.Timeout > 0 {
		ms = 1 // round up to the shortest timeout: 0 would let the endpoint choose
	}
	return machine.Submit{To: r.To, Channel: r.Flags, Type: uint32(r.Repeats) | uint32(ms)<<8, Payload: r.Bytes}
}

// RequestOf returns the call that an input makes. Its Bytes are those of the
// input.
func RequestOf(in machine.Submit) Request {
	return Request{
		To: in.To, Bytes: in.Payload, Repeats: uint8(in.Type),
		Timeout: time.Duration(in.Type>>8) * time.Millisecond, Flags: in.Channel,
	}
}

// CancelOf reads the command machine.Cancel, which makes an endpoint give up a
// submission. The payload is the number that Endpoint.Submitted in package
// endpoint returned: 4 bytes, big-endian.
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
	Expired              // all copies were sent, or Options.Limit has passed
	Cancelled            // by machine.Cancel, or with everything submitted to its peer
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
	ID64       int64 // of the packet, unwrapped; -1 when it was never sent
	Outcome    Outcome
	Copies     uint32
	Sample     Sample // when it was acknowledged
}

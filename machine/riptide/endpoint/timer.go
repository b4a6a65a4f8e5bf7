package endpoint

import "github.com/ackscope/ackscope/machine"

// timer is something that is due at a time of the endpoint's clock.
type timer struct {
	kind timerKind
	peer machine.Peer
	link uint32 // number of the link
	slot int32  // resend: index in link.out.pending
	at   int64  // resend: when the message was last sent, as known when the timer was set
	copy uint32 // resend: use of the slot
}

type timerKind uint8

const (
	timerHeartbeat timerKind = iota
	timerResend
	timerForget // a rejected address
)

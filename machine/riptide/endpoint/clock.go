package endpoint

import "github.com/ackscope/ackscope/machine"

// timer is something that is due at a time of the endpoint's clock.
type timer struct {
	due   int64 // ms
	order uint64
	kind  timerKind
	peer  machine.Peer
	life  uint32 // of the link
	slot  int32  // resend: of link.pending
	at    int64  // resend: when the message was last sent, as known when the timer was set
	copy  uint32 // resend: of the slot's use
}

type timerKind uint8

const (
	timerHeartbeat timerKind = iota
	timerResend
	timerForget // a rejected address
)

// agenda is a binary heap of timers, by time and then by order of entry.
type agenda struct {
	due   []timer
	count uint64
}

func (a *agenda) before(i, j int) bool {
	if a.due[i].due != a.due[j].due {
		return a.due[i].due < a.due[j].due
	}
	return a.due[i].order < a.due[j].order
}

func (a *agenda) push(t timer) {
	a.count++
	t.order = a.count
	a.due = append(a.due, t)
	for i := len(a.due) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.before(i, up) {
			break
		}
		a.due[i], a.due[up] = a.due[up], a.due[i]
		i = up
	}
}

// pop takes what is due at a time; false where nothing is.
func (a *agenda) pop(clock int64) (timer, bool) {
	if len(a.due) == 0 || a.due[0].due > clock {
		return timer{}, false
	}
	top, last := a.due[0], len(a.due)-1
	a.due[0] = a.due[last]
	a.due = a.due[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && a.before(child+1, child) {
			child++
		}
		if !a.before(child, i) {
			break
		}
		a.due[i], a.due[child] = a.due[child], a.due[i]
		i = child
	}
	return top, true
}

package judge

import "github.com/ackscope/ackscope/machine"

// RestsOnAbsence reports whether a divergence rests on a message that did not pass
// the tap. The others hold what passed against what passed. (A sequence that goes
// back may be of a message whose first copy is what is missing; and a message that
// goes out again, acked, may have been asked for by an Ack that is.)
func RestsOnAbsence(d *machine.Divergence) bool {
	switch d.Rule {
	case "connect-again", "connect-early", "connect-attempts", "heartbeat-early", "resend-early", "attempts",
		"sequence-reuse", "ack-forgotten", "after-the-end", "role", "unreadable":
		return false
	}
	return true
}

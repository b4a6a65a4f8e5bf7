package riptide

import (
	"strconv"

	"github.com/ackscope/ackscope/machine"
)

// RestsOnAbsence reports whether a divergence rests on a message that did not pass
// the tap. The others hold what passed against what passed.
func RestsOnAbsence(d *machine.Divergence) bool {
	switch d.Rule {
	case "connect-early", "connect-attempts", "heartbeat-early", "resend-early", "resend-after-ack", "attempts", "sequence-reuse", "ack-forgotten", "after-the-end":
		return false
	case "sequence", "heartbeat":
		want, err1 := strconv.ParseUint(d.Expected, 10, 16)
		got, err2 := strconv.ParseUint(d.Got, 10, 16)
		return err1 != nil || err2 != nil || uint16(got-want) < 1<<15
	}
	return true
}

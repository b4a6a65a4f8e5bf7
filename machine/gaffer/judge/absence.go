package judge

import (
	"strconv"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
)

// RestsOnAbsence reports whether a divergence rests on a packet that did not pass
// the tap. The others hold what passed against what passed: a bit that is taken
// back, a packet that was read and is left out, a number that was used before.
func RestsOnAbsence(d *machine.Divergence) bool {
	switch d.Rule {
	case "ack-went-back", "ack-withdrawn", "ack-omitted", "ack-forgotten", "ack-without-bit", "sequence-reuse",
		messages.MessageResentEarly.ID, messages.MessageResentAcked.ID,
		"slice-count", "slice-changed", "slice-resent-early", "block-went-back", "ack-early", "ack-empty",
		"packet-too-large", "fragment-needless", "fragment-header",
		"connect-role", "connect-salt-changed", "connect-order", "connect-after-disconnect", "connect-farewells",
		"connect-early":
		return false
	case "sequence":
		return forward(d)
	}
	return true
}

// forward reports whether a number is ahead of the one that was expected: what is
// missing between may have been sent.
func forward(d *machine.Divergence) bool {
	want, err1 := strconv.ParseUint(d.Expected, 10, 32)
	got, err2 := strconv.ParseUint(d.Got, 10, 32)
	return err1 != nil || err2 != nil || uint16(got-want) < 1<<15
}

package srdp

import "github.com/ackscope/ackscope/machine"

// RestsOnAbsence reports whether a divergence rests on a packet that did not pass
// the tap. The others hold what passed against what passed.
func RestsOnAbsence(d *machine.Divergence) bool {
	switch d.Rule {
	case "ack-missing", "ack-unasked", "ack-unsent", "order":
		return true
	}
	return false
}

package judge

import "github.com/ackscope/ackscope/machine"

// RestsOnAbsence reports whether a divergence rests on a packet that did not pass
// the tap. The others hold what passed against what passed. (A number that goes
// back may be of a packet whose first copy is what is missing.)
func RestsOnAbsence(d *machine.Divergence) bool {
	switch d.Rule {
	case "id-reuse", "id-range", "ack-mark", "command", "repeat-on-stream", "repeat-after-ack":
		return false
	}
	return true
}

// Package replay feeds a capture through reference implementations. It finds the first packet
// that an endpoint of the capture would not have sent if it followed the protocol.
//
//	capture -> analyze.Session (twice) -> one machine.Judge a flow and behaviour
//	                                          |
//	          side at the tap                 |          side far from it
//	strict: its reference reads what          |   evidence: its reference is given what
//	passed the tap, in that order, and        |   its own later packets prove to have
//	must send the same                        |   come; the rest is left undecided
//	                                          v
//	      Result: conforms | consistent | diverges (frame, rule, field, expected, got)
//
// Packets are compared by field, not by bytes. The capture tells what the application chose:
// what it sent, when its frames came, which packets it refused. The reference chooses the
// same, and the result reports it.
//
// How a protocol's packets are judged is known to machine/<protocol>/judge. This package knows
// files, flows, results, baselines and the order of output. The order is the same on any
// number of cores.
//
// Where a side diverges, the capture is read once more (recheck.go). The capture itself may
// lack packets: then sides are judged again by judges for lossy captures (lossy.go).
package replay

// Package replay feeds a capture through reference implementations and finds
// the first packet in which an endpoint of the capture stops being the protocol.
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
// Packets are compared by field, not by bytes. What the application chose (what
// it sent, when its frames fell, which packets it refused) is inferred from the
// capture and reported as such. How a protocol's packets are judged is known to
// machine/<protocol>; this package knows files, flows, results, baselines and
// the order of output, which is the same on any number of cores.
//
// Ring 4 of the house.
package replay

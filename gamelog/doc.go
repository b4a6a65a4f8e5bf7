// Package gamelog reads the log that a game wrote while a capture was taken, and places it on
// the clock of the capture. Then the log explains what the packets alone leave open: "the side
// sent nothing for 180 ms" becomes "the client's frame took 180 ms".
//
// A log has one JSON object a line. For example:
//
//	{"t": 12.016, "frame_ms": 16.6}
//	{"t": 12.017, "event": "send", "sequence": 4711}
//	{"t": 13.000, "sent": 4770, "received": 4650, "rtt": 66.8}
//
// [Read] reads it within bounds. A [Trace] collects the times of the capture's packets. [Align]
// finds how both clocks relate: capture = offset + rate × log. It needs no common epoch and no
// known unit.
//
// Two runs of one game look alike: sequence numbers begin at 0, and packets leave 60 times a
// second. So a line that fits is no proof. The intervals of a log and of its capture rise and
// fall together. They do so far more often than chance has it, and more often than those of
// packets before and after. Otherwise the log is not aligned, and the result says why.
package gamelog

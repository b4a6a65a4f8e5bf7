// Package tracker rebuilds from a capture what both endpoints of a Gaffer flow knew.
//
// A header shows what its sender had received when it sent. How much follows from that
// depends on where the tap is:
//
//	near   the tap is at the side: what passed it was read in this order. Its headers prove
//	       what was read (witness.go), and each datagram gets its fate (settle.go)
//	far    the side is known by what its own headers name (evidence.go)
//
// The transitions are those of machine/gaffer. This package adds the evidence: the
// place of the tap (vantage.go), the grades, and the findings (anomalies.go).
// Conversation follows in the same way the messages that packets carry.
package tracker

// Package judge compares the headers and messages of a captured Gaffer flow with a reference.
// For example: a header whose ack_bits lack a packet that its sender had read diverges.
//
// At a tap at a side, all that the side can have received passed in order, so its reference
// is driven strictly (near.go). Away from the side, its headers are compared with each other
// and with what passed the tap (far.go). What the capture cannot settle is counted as
// undecided. messages.go and article.go judge what the packets carry. rules.go lists what a
// side can break.
package judge

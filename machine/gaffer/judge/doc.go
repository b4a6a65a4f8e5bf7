// Package judge holds the headers of a captured Gaffer flow against the reference. For
// example: a header whose ack_bits lack a packet that its sender had read diverges.
//
// A side at the tap is held strictly, since all that it can have read passed in order
// (near.go). A side away from it is held by what its own headers prove (far.go). What
// cannot be settled is counted, not judged. messages.go and article.go judge what the
// packets carry.
package judge

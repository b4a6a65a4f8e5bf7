// Package srdpcheck holds the tests that compare this module's SRDP with a
// second endpoint, package srdppeer, which shares no code with it.
//
// Each run connects both endpoints over a network that loses, delays,
// duplicates and reorders. A tap writes a capture, and the second endpoint
// writes a log. For example, the log has "resent id 7, copy 2", and the capture
// has a frame with that copy. The tests compare:
//
//   - what the applications got with what they sent;
//   - what Ackscope says of the second endpoint with its log: events, messages
//     and state, and above all what it calls certain;
//   - what replay says: neither endpoint may diverge.
//
// The runs are in virtual time (simulated), or over UDP sockets on loopback.
package srdpcheck

// Package article has the sample programs of the article series that send no acks of packets:
// large blocks in slices, packets in fragments, and the client and server handshake.
// It holds their references, the tracker that places the tap, and their judges.
//
// Source: "Building a Game Network Protocol", Glenn Fiedler, 2016, and its programs.
package article

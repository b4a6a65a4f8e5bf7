// Package article has the sample programs of the article series that do not acknowledge
// packets. They send large blocks in slices, packets in fragments, and the connect
// handshake. The package has their reference endpoints, the tracker that places the
// tap, and their judges.
//
// Source: "Building a Game Network Protocol", Glenn Fiedler, 2016, and its programs.
package article

// Package gaffer is the codec of the Gaffer family (Glenn Fiedler's reliable
// ordered messages and the libraries that descend from them): bytes to values
// and back, by a profile.
package gaffer

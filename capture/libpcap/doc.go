// Package libpcap captures live through libpcap, on systems that have it and no
// AF_PACKET: macOS, the BSDs. It takes cgo and a build with -tags libpcap; without
// the tag it is empty, and the program stays pure Go.
//
// Source of truth: pcap(3PCAP).
package libpcap

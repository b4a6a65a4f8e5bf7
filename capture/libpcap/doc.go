// Package libpcap captures live through libpcap, on systems that have it but no
// AF_PACKET: macOS and the BSDs. It needs cgo and a build with -tags libpcap.
// Without the tag the package is empty, and the program stays pure Go.
//
// Source: pcap(3PCAP).
package libpcap

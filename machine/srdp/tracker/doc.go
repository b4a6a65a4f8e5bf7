// Package tracker rebuilds from a capture what both ends of an SRDP flow knew:
// the lives of packets, the queues, and the promises to receivers. For example,
// it reports that A sent packet 311 twice and read its acknowledgement in frame
// 40.
//
// [Counter] follows the one counter of packet ids that an endpoint has for all
// of its peers.
package tracker

// Package listing holds the commands that list what a capture shows: flows,
// packets, events, messages, findings, ledger and graph. For example, `ackscope
// packets match.pcapng` prints a line for each packet.
//
// The commands print text, JSON Lines, or tshark's formats.
package listing

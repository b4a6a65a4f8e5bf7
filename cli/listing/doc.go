// Package listing holds the commands that list what a capture shows: flows, packets,
// events, messages, findings, ledger and graph, as text, JSON Lines or tshark's output.
package listing

// Package listing holds the commands that list what a capture shows. They are
// flows, packets, events, messages, findings, ledger and graph. They print
// text, JSON Lines or tshark's formats.
package listing

// Package netcode follows a netcode connection from its encrypted packets: the handshake,
// the sequence numbers of each side, keep-alives and the end.
//
// Source: the netcode 1.02 standard.
package netcode

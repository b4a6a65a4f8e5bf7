// Package netcode follows a netcode connection by its encrypted packets. They show the
// handshake, the sequence numbers of each side, keep-alives and the end.
//
// Source: the netcode 1.02 standard.
package netcode

// Package testnet gives tests of live capture a network of their own. On Linux
// it is a namespace with loopback and a pair of interfaces, veth0 and veth1.
// Only the packets that a test sends pass there.
package testnet

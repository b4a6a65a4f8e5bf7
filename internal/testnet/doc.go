// Package testnet gives tests of live capture a network of their own: on Linux
// a namespace with loopback and a pair of interfaces, veth0 and veth1, on which
// nothing passes but what the test sends.
package testnet

// Package testnet gives tests of live capture a network of their own.
//
//	if !testnet.Namespaced(t) {
//		return // the test has run in its namespaces
//	}
//	testnet.Inject(t, "veth1").Send(t, frames...) // they arrive at veth0
//
// On Linux the network is a namespace with loopback and a pair of interfaces,
// veth0 and veth1. Only the packets that a test sends pass there.
package testnet

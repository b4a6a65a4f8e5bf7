// Package simulate implements the command simulate: reference endpoints over a
// simulated network, in virtual time. A protocol adds itself with a Simulator:
//
//	var Simulator = simulate.Simulator{Name: "mine", Begin: begin, Words: words}
package simulate

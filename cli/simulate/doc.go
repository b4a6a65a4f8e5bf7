// Package simulate holds the command simulate: reference endpoints over a simulated
// network, in virtual time. What a protocol brings is a Simulator:
//
//	var Simulator = simulate.Simulator{Name: "mine", Begin: begin, Words: words}
package simulate

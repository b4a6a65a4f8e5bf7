// Package lab runs the reference endpoints on real sockets: servers, clients
// and a relay between them that loses, delays and doubles as told.
//
//	 client                    relay                      server
//	┌──────────┐   UDP    ┌──────────────────┐   UDP    ┌──────────┐
//	│ endpoint ├──────────┤ sim.Impairment   ├──────────┤ endpoint │
//	│ one loop │  or TCP  │ a clock, a heap  │  or TCP  │ one loop │
//	└────┬─────┘          └────────┬─────────┘          └────┬─────┘
//	     └───── log, journal ──────┴────── log, journal ─────┘
//
// The endpoints are those of the simulation, and so are the paths and the loop
// that drives an endpoint (sim.Driver): what sim does in virtual time, this does in
// real time. A sim.Kit says what there is to know of a protocol. Each host
// is one goroutine that owns its endpoints; sockets are read by goroutines of
// their own, which hand it what came. Every host logs what its endpoints did,
// in the form of the logs that stand beside recorded captures, and its inputs
// in a journal, from which Play gives every byte again.
//
// Nothing here sends to an address that was not named, or did not speak first.
//
// Ring 5 of the house: with cmd and capture/afpacket the only place that asks
// for the time and opens sockets.
package lab

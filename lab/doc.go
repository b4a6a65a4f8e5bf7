// Package lab runs the reference endpoints on real sockets. It has servers,
// clients, and a relay between them that loses, delays and duplicates as its
// options say.
//
//	 client                    relay                      server
//	┌──────────┐   UDP    ┌──────────────────┐   UDP    ┌──────────┐
//	│ endpoint ├──────────┤ sim.Impairment   ├──────────┤ endpoint │
//	│ one loop │  or TCP  │ a clock, a heap  │  or TCP  │ one loop │
//	└────┬─────┘          └────────┬─────────┘          └────┬─────┘
//	     └───── log, journal ──────┴────── log, journal ─────┘
//
// It uses the endpoints of the simulation, its paths, and the loop that drives
// an endpoint (sim.Driver). Package sim runs them in virtual time, and lab in
// real time. A sim.Kit describes the protocol.
//
// Each host is one goroutine that owns its endpoints. Other goroutines read the
// sockets and pass on what arrived. Every host logs what its endpoints did, in
// the format of the logs that accompany recorded captures. A journal records
// its inputs. Play repeats every byte from it.
//
// The package sends only to addresses that the user named, or that sent
// something first.
//
// Apart from cmd and capture/afpacket, only this package reads the clock and
// opens sockets.
package lab

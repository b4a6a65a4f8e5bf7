// Package sim is a small world for protocol endpoints. It has virtual time,
// hosts that run endpoints frame by frame, links, and taps that see what
// passes. Links lose, delay, jitter, reorder and duplicate.
//
//	 host A                        path A to B                       host B
//	┌──────────┐   rate   ·····delay + jitter·····   ┌──────────┐   ┌─────────┐
//	│ app      │ ┌──────┐  ↑         ↑         ↑     │ socket   │   │ endpoint│
//	│ endpoint ├─┤ queue├──┼─ lost? ─┼─ twice?─┼─────┤ queue    ├───┤ app     │
//	└──────────┘ └──────┘ tap 0    tap 0.5    tap 1  └──────────┘   └─────────┘
//
// One seed is one run. Each host and each path has its own stream of random
// numbers, derived from the seed and its name. A change to one therefore does
// not change what the others draw. The package never reads a clock.
//
// Watchers see what happens step by step. Two watchers are the journal (inputs,
// to replay) and the truth (what each endpoint really did).
//
// Driver is the loop of one endpoint and its application, for a World and for
// the real sockets of package lab. Kit is what such a run needs of a protocol.
// Describer formats an endpoint's log. The packages below this one implement
// Kit and Describer.
//
// The package imports machine, and no protocol.
package sim

// Package sim is a small world for protocol endpoints: virtual time, hosts
// that run them frame by frame, links that lose, delay, jitter, reorder and
// duplicate, and taps that see what passes.
//
//	 host A                        path A to B                       host B
//	┌──────────┐   rate   ·····delay + jitter·····   ┌──────────┐   ┌─────────┐
//	│ app      │ ┌──────┐  ↑         ↑         ↑     │ socket   │   │ endpoint│
//	│ endpoint ├─┤ queue├──┼─ lost? ─┼─ twice?─┼─────┤ queue    ├───┤ app     │
//	└──────────┘ └──────┘ tap 0    tap 0.5    tap 1  └──────────┘   └─────────┘
//
// One seed is one run: every choice is drawn from streams of random numbers
// that are derived from the seed and from who draws, so that a change to one
// host or path leaves what the others draw as it was. Nothing here asks for
// the present time.
//
// What happens is told step by step to watchers. The journal (inputs, to be
// played again) and the truth (what each endpoint really did) are watchers.
//
// Driver is the loop of one endpoint and its application, for a World and for the
// real sockets of package lab. Kit is what such a run has to know of a protocol, and
// Describer words an endpoint's log; the packages below this one implement both.
//
// Ring 2 of the house: it knows package machine and no protocol.
package sim

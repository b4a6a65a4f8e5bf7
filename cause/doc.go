// Package cause tells what the troubles of many flows have in common. For example, 200
// players of one server all wait at the same moments, or only those of one network lose
// packets:
//
//	11 stalls, each of all 200 flows within 8 ms: the server process (likely)
//	37 flows lose 5.1 to 9.0 %, 35 of them in 203.0.113.0/24: their path (likely)
//	1 flow loses 12.3 %, and no other: this player (likely)
//	no common cause
//
// Two things show a common cause. Pauses and rises of the round trip must come at one
// moment in more flows than chance explains. Losses must differ between groups of flows
// more than chance explains. Chance is measured: the times are shifted, or the losses are
// dealt anew, 199 times with a seeded source. Source: M. Kulldorff, "A spatial scan
// statistic", Communications in Statistics 26, 1997; A. M. Abrams et al., "Gumbel based
// p-value approximations for spatial scan statistics", Int. J. of Health Geographics 9, 2010.
//
// Flows are grouped by the server's address and by the network of the players, a /24 or an
// IPv6 /48. They are also grouped by the library's version and the capture's interface. Each
// player is a group too. A cause is never certain: a capture shows what came together, and
// not why.
package cause

// Package commoncause tests the verdict on a common cause through the whole program. It makes
// captures of many players from simulated games: each player is one of them, from another
// address and at another time. For example, the games of the clients in 203.0.3.0/24 lose
// 12 % of their packets, and `ackscope overview --json` must name that prefix.
package commoncause

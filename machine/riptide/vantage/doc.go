// Package vantage finds where the tap of a capture is: at one side of a Riptide connection, at
// both, or between them.
//
// Example: A answers B's messages within 1 ms of their passing the tap, and B answers A's after 40
// ms. The 40 ms hold a round trip, so the tap is at A.
//
// Evidence records what passes the tap, in order. It keeps for each side:
//
//	reach.go            how soon the side answers, the RTT that it reports, its frames
//	contradictions.go   what was lost, duplicated or overtaken between the tap and it
//
// Verdict (verdict.go) combines both.
package vantage

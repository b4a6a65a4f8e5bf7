// Package messages has the reliable ordered messages of the article and of yojimbo.
// Endpoints use its sender and receiver queues (Queues). Trackers use its record of
// what carried each message (Direction, Lane), and its rules.
//
// Source: "Reliable Ordered Messages", Glenn Fiedler, 2016; yojimbo 1.2.
package messages

// Package messages has the reliable ordered messages of the article and of yojimbo: the
// sender and receiver queues of an endpoint (Queues), and for captures what carried
// each message (Direction, Lane) and what the rules say of it.
//
// Source: "Reliable Ordered Messages", Glenn Fiedler, 2016; yojimbo 1.2.
package messages

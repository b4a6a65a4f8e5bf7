// Package overview answers first: it turns the analysis of a capture into a short diagnosis.
// For example, the diagnosis of a lossy session begins with this sentence:
//
//	The trouble is in the network: A→B loses 9.3%, B→A 9.8%.
//
// The diagnosis is data (Capture, Flow, Trouble), with a text and a sentence made of it. It
// sorts what was found by where the cause most likely lies:
//
//   - network: loss by direction, round trips, jitter, silence
//   - library: what was sent again and why, messages that waited for earlier ones
//   - code: where replay and the rules contradict an endpoint
//
// It then names up to three commands that show more. A figure that the capture does not show
// is "?". The command `ackscope overview`, reports and screens share this package.
package overview

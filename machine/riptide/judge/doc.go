// Package judge holds what a side of a captured Riptide connection sent against the
// reference of a behaviour: Acks, sends and resends, heartbeats, notify headers and the
// course of the connection. A side at the tap is held strictly, one away from it by
// what its own messages prove (far.go).
package judge

// Package judge compares what a side of a captured Riptide connection sent with the reference of
// a behaviour. For example: each copy of a reliable message is answered by one Ack, at once.
//
// It judges Acks, sends and resends, heartbeats, notify headers and the course of the
// connection. At a tap at the side, the reference is driven strictly. Away from it, the
// messages of the side are compared with each other (far.go). rules.go and rules_session.go
// list what a side can break.
package judge

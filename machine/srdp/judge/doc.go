// Package judge compares what a side of a captured SRDP flow sent with the reference. For example:
// each copy of a packet is acknowledged once. It judges answers, sends and resends, ids and
// order; rules.go lists what a side can break.
package judge

// Package judge holds what a side of a captured SRDP flow sent against the reference: answers,
// sends and resends, ids and order.
package judge

// Package connecting tests how failed and broken connections are explained, with real captures
// that are changed: their clock is shifted, or packets are left out.
package connecting

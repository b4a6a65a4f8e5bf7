package machine

import "unsafe"

// Prefetch asks the processor for the memory at p. Go has no function for that, so it is
// assembly. A tracker calls it for memory that it will write soon, and that has left the caches.
// The memory then comes while the tracker does other work. Prefetch changes nothing.
//
//go:noescape
func Prefetch(p unsafe.Pointer)

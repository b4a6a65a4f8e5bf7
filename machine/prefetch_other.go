//go:build !amd64

package machine

import "unsafe"

// Prefetch does nothing on this processor: it is only a hint.
func Prefetch(unsafe.Pointer) {}

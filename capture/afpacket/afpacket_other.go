//go:build !linux

package afpacket

// Open fails with ErrUnsupported.
func Open(Options) (Live, error) { return nil, ErrUnsupported }

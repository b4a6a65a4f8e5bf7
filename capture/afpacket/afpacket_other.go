//go:build !linux

package afpacket

import "os"

// Open fails with ErrUnsupported.
func Open(Options) (Live, error) { return nil, ErrUnsupported }

// OpenGroup fails with ErrUnsupported.
func OpenGroup([]Options) (Group, error) { return nil, ErrUnsupported }

// Socket fails with ErrUnsupported.
func Socket(Options) (*os.File, error) { return nil, ErrUnsupported }

//go:build !unix && !windows

package outfile

import "os"

// lock does nothing: the system has no locks.
func lock(*os.File) error { return nil }

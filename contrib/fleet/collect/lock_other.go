//go:build !unix

package collect

import "os"

// lock opens the file of the lock. Here only the links keep a second collector out.
func lock(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) }

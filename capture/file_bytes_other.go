//go:build !js

package capture

import "os"

// bytesOf returns what reads an open file.
func bytesOf(f *os.File) fileBytes { return f }

//go:build !unix

package command

import "os"

// hangUps returns a channel that receives nothing: there is no SIGHUP here.
func hangUps() (<-chan os.Signal, func()) { return nil, func() {} }

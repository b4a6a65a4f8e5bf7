//go:build !linux

package privilege

import (
	"os"

	"github.com/ackscope/ackscope/capture/afpacket"
)

// OpenWithLeast does nothing: this system has no live capture.
func OpenWithLeast([]afpacket.Options, *Options) error { return nil }

// current returns the credentials of this process. The saved ids are not known
// on this system.
func current() (c credentials) {
	c.uid = ids{os.Getuid(), os.Geteuid(), os.Geteuid()}
	c.gid = ids{os.Getgid(), os.Getegid(), os.Getegid()}
	c.sudoUID, c.sudoGID = sudoIDs()
	return c
}

//go:build libpcap && cgo && unix

package privilege

import (
	"fmt"
	"os"
	"syscall"
)

// become switches every thread of the process to another user, for good. A
// process without user 0 has no capabilities. Root that stays root keeps them.
func become(who identity) error {
	now := current()
	if now.uid.all(who.UID) && now.gid.all(who.GID) {
		return nil
	}
	if who.groups != nil {
		if err := syscall.Setgroups(who.groups); err != nil {
			return os.NewSyscallError("setgroups", err)
		}
	}
	if err := syscall.Setregid(who.GID, who.GID); err != nil { // the saved id follows
		return os.NewSyscallError("setregid", err)
	}
	if err := syscall.Setreuid(who.UID, who.UID); err != nil {
		return os.NewSyscallError("setreuid", err)
	}
	if now = current(); !now.uid.all(who.UID) || !now.gid.all(who.GID) {
		return fmt.Errorf("the system still tells of user ids %v, group ids %v", now.uid, now.gid)
	}
	return nil
}

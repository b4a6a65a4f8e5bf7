package privilege

import (
	"slices"
	"strings"
	"testing"
)

// TestSuccessor checks the chosen user for each way to start, without any
// privilege.
func TestSuccessor(t *testing.T) {
	same := func(id int) ids { return ids{id, id, id} }
	root := credentials{uid: same(0), gid: same(0)}
	sudo := func(uid, gid string) credentials {
		return credentials{uid: same(0), gid: same(0), sudoUID: uid, sudoGID: gid}
	}
	player := credentials{uid: same(4711), gid: same(4712), sudoUID: "0", sudoGID: "0"}
	setUID := credentials{uid: ids{4711, 0, 0}, gid: ids{4712, 0, 0}, sudoUID: "1", sudoGID: "1"}
	const none = -1 // groups are not set: the present ones stay
	for _, c := range []struct {
		name     string
		now      credentials
		user     string
		keepRoot bool
		uid, gid int
		group    int
		refused  string // a part of the error; empty if a user is chosen
	}{
		{name: "root", now: root, refused: "--keep-root"},
		{name: "root", now: root, refused: "-Z USER"},
		{name: "root stays", now: root, keepRoot: true, uid: 0, gid: 0, group: none},
		{name: "root by number", now: root, user: "4711:4712", uid: 4711, gid: 4712, group: 4712},
		{name: "root as root", now: root, user: "root", refused: "that is root"},
		{name: "root as 0", now: root, user: "0:4712", refused: "that is root"},
		{name: "root as root on purpose", now: root, user: "root", keepRoot: true, uid: 0, gid: 0, group: none},
		{name: "both", now: root, user: "4711:4712", keepRoot: true, refused: "expected one of them"},
		{name: "no such user", now: root, user: "no-such-user", refused: "unknown user"},
		{name: "no such number", now: root, user: "3999999999", refused: "UID:GID"},
		{name: "no id", now: root, user: "4294967295:4712", refused: "UID:GID"},
		{name: "no group id", now: root, user: "4711:4294967295", refused: "UID:GID"},
		{name: "below 0", now: root, user: "-1:-1", refused: "UID:GID"},
		{name: "half", now: root, user: "4711:", refused: "UID:GID"},
		{name: "colon", now: root, user: ":", refused: "UID:GID"},
		{name: "sudo", now: sudo("4711", "4712"), uid: 4711, gid: 4712, group: 4712},
		{name: "sudo, and -Z", now: sudo("4711", "4712"), user: "4713:4714", uid: 4713, gid: 4714, group: 4714},
		{name: "sudo stays root", now: sudo("4711", "4712"), keepRoot: true, uid: 0, gid: 0, group: none},
		{name: "sudo called by root", now: sudo("0", "0"), refused: "-Z USER"},
		{name: "sudo called by 00", now: sudo("00", "0"), refused: "-Z USER"},
		{name: "sudo, leave as it is", now: sudo("4294967295", "4712"), refused: "SUDO_UID"},
		{name: "sudo, below 0", now: sudo("-1", "4712"), refused: "SUDO_UID"},
		{name: "sudo, beyond", now: sudo("4294967296", "4712"), refused: "SUDO_UID"},
		{name: "sudo, a name", now: sudo("player", "4712"), refused: "SUDO_UID"},
		{name: "sudo, a space", now: sudo(" 4711", "4712"), refused: "SUDO_UID"},
		{name: "sudo, an escape", now: sudo("\x1b[31m", "4712"), refused: `"\x1b[31m"`},
		{name: "sudo, no group", now: sudo("4711", ""), refused: "SUDO_GID"},
		{name: "sudo, leave the group as it is", now: sudo("4711", "4294967295"), refused: "SUDO_GID"},
		{name: "a user", now: player, uid: 4711, gid: 4712, group: none},
		{name: "a user stays no root", now: player, keepRoot: true, uid: 4711, gid: 4712, group: none},
		{name: "a user as itself", now: player, user: "4711:4712", uid: 4711, gid: 4712, group: none},
		{name: "a user as another", now: player, user: "4713:4712", refused: "only root"},
		{name: "a user in another group", now: player, user: "4711:0", refused: "only root"},
		{name: "a user as root", now: player, user: "root", keepRoot: true, refused: "only root"},
		{name: "set-user-ID", now: setUID, uid: 4711, gid: 4712, group: none},
		{name: "set-user-ID stays no root", now: setUID, keepRoot: true, uid: 4711, gid: 4712, group: none},
		{name: "set-user-ID as another", now: setUID, user: "4713:4714", refused: "only root"},
	} {
		who, err := (&Options{User: c.user, KeepRoot: c.keepRoot}).successor(c.now)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) || strings.ContainsRune(err.Error(), '\x1b') {
				t.Errorf("%s: %v, expected an error that says %q, in plain letters", c.name, err, c.refused)
			}
			continue
		}
		var groups []int
		if c.group != none {
			groups = []int{c.group}
		}
		if err != nil || who.UID != c.uid || who.GID != c.gid || !slices.Equal(who.groups, groups) ||
			(groups == nil) != (who.groups == nil) {
			t.Errorf("%s: %+v, %v; expected user %d, group %d, groups %v", c.name, who, err, c.uid, c.gid, groups)
		}
	}
}

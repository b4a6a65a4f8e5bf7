package privilege

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Options name the user as whom a capture continues once its sockets are open.
type Options struct {
	User     string
	KeepRoot bool
}

// Register adds the flags.
func (f *Options) Register(p *pflag.FlagSet) {
	p.StringVarP(&f.User, "relinquish-privileges", "Z", "",
		"once the sockets are open, go on as this `USER`, or as UID:GID (default: who called sudo)")
	p.BoolVar(&f.KeepRoot, "keep-root", false, "started by root: stay user 0, who can write root's files")
}

// identity is the user as whom a capture continues.
type identity struct {
	UID, GID int
	groups   []int // supplementary groups; nil keeps the present ones
}

// ids are the user ids or the group ids of a process.
type ids struct{ real, effective, saved int }

// all reports whether all three are id.
func (i ids) all(id int) bool { return i == ids{id, id, id} }

// credentials decide as whom a capture continues.
type credentials struct {
	uid, gid         ids
	sudoUID, sudoGID string // SUDO_UID and SUDO_GID of the environment, which sudo sets
}

// ErrRoot refuses to capture as root without -Z, sudo or --keep-root.
var ErrRoot = errors.New("started by root: expected -Z USER, who goes on once the sockets are open (such as -Z " +
	"nobody), or --keep-root, to stay user 0")

// successor returns the user as whom the capture continues. For root it is the
// user of -Z, or the caller of sudo, or root itself with --keep-root. Every
// other process continues as its real user, so a set-user-ID program does not
// become its owner.
func (f *Options) successor(now credentials) (identity, error) {
	caller := identity{UID: now.uid.real, GID: now.gid.real}
	if f.User == "" {
		switch {
		case caller.UID != 0, f.KeepRoot:
			return caller, nil
		case now.sudoUID == "":
			return identity{}, ErrRoot
		}
		return sudoCaller(now)
	}
	named, err := lookupUser(f.User)
	switch {
	case err != nil:
		return identity{}, fmt.Errorf("-Z %s: %w", f.User, err)
	case caller.UID != 0 && (named.UID != caller.UID || named.GID != caller.GID):
		return identity{},
			fmt.Errorf("-Z %s: only root can go on as somebody else: expected to be started by root, found user %d, group %d",
				f.User, caller.UID, caller.GID)
	case caller.UID != 0:
		return caller, nil
	case named.UID == 0 && !f.KeepRoot:
		return identity{}, fmt.Errorf("-Z %s: that is root: expected another user, or --keep-root", f.User)
	case named.UID != 0 && f.KeepRoot:
		return identity{}, fmt.Errorf("-Z %s and --keep-root: expected one of them", f.User)
	case named.UID == 0:
		return caller, nil
	}
	return named, nil
}

// sudoCaller returns the user who called sudo.
func sudoCaller(now credentials) (identity, error) {
	refused := func(name, value, expected string) (identity, error) {
		return identity{}, fmt.Errorf("%s=%q: expected %s, as sudo sets it; give -Z USER, or --keep-root", name,
			value, expected)
	}
	uid, err := parseID(now.sudoUID)
	switch {
	case err != nil:
		return refused("SUDO_UID", now.sudoUID, "the number of a user")
	case uid == 0:
		return identity{}, ErrRoot // root called sudo
	}
	gid, err := parseID(now.sudoGID)
	if err != nil {
		return refused("SUDO_GID", now.sudoGID, "the number of a group")
	}
	who := identity{UID: uid, GID: gid, groups: []int{gid}}
	// Go reads /etc/passwd only. A user of a directory service is not in it, and
	// gets only the group that sudo names.
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		if who.groups, err = supplementary(u); err != nil {
			return identity{}, fmt.Errorf("the groups of %s, who called sudo: %w", u.Username, err)
		}
	}
	return who, nil
}

// lookupUser returns a user from the user database, by name or number. UID:GID
// names a user who is in no database.
func lookupUser(text string) (who identity, err error) {
	if uid, gid, ok := strings.Cut(text, ":"); ok {
		var errs [2]error
		who.UID, errs[0] = parseID(uid)
		who.GID, errs[1] = parseID(gid)
		if errors.Join(errs[:]...) != nil {
			return identity{}, errors.New("expected a user's name, or UID:GID such as 4711:4711")
		}
		who.groups = []int{who.GID}
		return who, nil
	}
	u, err := user.Lookup(text)
	if err != nil && isNumber(text) {
		if u, err = user.LookupId(text); err != nil {
			return identity{}, fmt.Errorf("%w; expected UID:GID for a user who is in no database", err)
		}
	}
	if err != nil {
		return identity{}, err
	}
	if who.UID, err = parseID(u.Uid); err != nil {
		return identity{}, err
	}
	if who.GID, err = parseID(u.Gid); err != nil {
		return identity{}, err
	}
	who.groups, err = supplementary(u)
	return who, err
}

func isNumber(text string) bool { return strings.Trim(text, "0123456789") == "" }

// supplementary returns a user's groups from the database.
func supplementary(u *user.User) (groups []int, err error) {
	list, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	for _, text := range list {
		g, err := parseID(text)
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// parseID parses a user or group id. It refuses the largest number:
// setresuid(2) reads it as "do not change", which would keep root.
func parseID(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == math.MaxUint32 {
		return 0, fmt.Errorf("id %q: expected a number below %d", text, uint32(math.MaxUint32))
	}
	return int(n), nil
}

// sudoIDs returns the ids of sudo's caller, as sudo set them.
func sudoIDs() (uid, gid string) { return os.Getenv("SUDO_UID"), os.Getenv("SUDO_GID") }

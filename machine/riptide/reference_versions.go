package riptide

import (
	"slices"
	"strings"
	"time"

	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Version is one version of the library, of its port, or of the notes, as a reference endpoint can
// run it. Build is what it writes, and Behaviour how its sequencers work. The other fields say how
// its connections differ.
type Version struct {
	Name      string
	Build     *wire.Build
	Behaviour *Behaviour

	// Echoes is set where a server whose application decides on connections answers the first Connect
	// with a Connect of its own.
	Echoes bool
	// Answers is set where a client answers the Welcome with a Welcome of its own. The server then
	// counts the connection as made only after that answer. The dialect decides it.
	Answers bool
	// RejectsPending is set where a server answers a repeated Connect by Reject with reason Pending,
	// while its application has not decided.
	RejectsPending bool
	// AnswersEarly is set where a server answers heartbeats before the connection is made.
	AnswersEarly bool
	// PendingEnds is set where a server gives up a connection when its application never decides.
	PendingEnds bool
	// Forgets is how long the server ignores a rejected address over UDP. Negative: for ever.
	Forgets time.Duration
	// Reasons is added to the reject reasons of the dialect.
	Reasons uint8
	// NoTimeout is set where a silent peer never times out.
	NoTimeout bool
}

const (
	// never is the value of Version.Forgets for a server that never forgets a rejected address.
	// Source: name, no time
	never = -1
	// ConnectTimeout is how long a connection may wait for the application's
	// decision.
	ConnectTimeout = 2 * Timeout
)

// Versions lists all of them, the oldest first.
var Versions = []*Version{
	version("notes", "notes", "riptide@notes", Version{RejectsPending: true}),
	version("2.0", "2.0.0", "riptide@2.0", Version{Echoes: true, AnswersEarly: true}),
	version("2.1-dev-d", "dev-d", "riptide@dev-d", Version{Echoes: true, AnswersEarly: true, Forgets: ConnectTimeout}),
	version("2.1-dev-n", "dev-n", "riptide@dev-n", Version{Echoes: true, PendingEnds: true, Forgets: never}),
	version("2.1.0", "2.1.0", "riptide@2.1.0", Version{Echoes: true, PendingEnds: true, Forgets: never}),
	version("2.1.1", "2.1.1", "riptide@2.1.1-2.2.1", Version{Echoes: true, PendingEnds: true, Forgets: never}),
	version("2.1.2", "2.1.2", "riptide@2.1.1-2.2.1", Version{Echoes: true, PendingEnds: true, Forgets: never}),
	version("2.2.0", "2.2.0", "riptide@2.1.1-2.2.1", Version{Echoes: true, PendingEnds: true, Forgets: never}),
	version("2.2.1", "2.2.1", "riptide@2.1.1-2.2.1", Version{Echoes: true, PendingEnds: true}),
	version("main", "2.2.1", "riptide@main", Version{Echoes: true, PendingEnds: true}),
	version("pytide-2.0.0", "pytide-2.0.0", "pytide@2.0", Version{Echoes: true, AnswersEarly: true}),
	version("pytide-2.1.0-alpha", "pytide-2.1.0-alpha", "pytide@2.1-alpha",
		Version{Echoes: true, Forgets: never, Reasons: 1, NoTimeout: true}),
}

func version(name, build, behaviour string, v Version) *Version {
	v.Name, v.Behaviour = name, LookupBehaviour(behaviour)
	v.Build, _ = wire.LookupBuild(build)
	v.Answers = !v.Build.Dialect.WelcomeOneWay
	return &v
}

// LookupVersion finds a version by its own name, or by the name of its behaviour or build:
// "riptide@dev-n", "2.0.0". The name of a dialect ("2.1") finds its newest release.
func LookupVersion(name string) (*Version, bool) {
	for _, v := range Versions {
		if strings.EqualFold(v.Name, name) {
			return v, true
		}
	}
	if b := LookupBehaviour(name); b != nil {
		return VersionOf(b), true
	}
	for _, v := range Versions {
		if strings.EqualFold(v.Build.Name, name) {
			return v, true
		}
	}
	if d, ok := wire.Lookup(name); ok && d == wire.V21 {
		return LookupVersion("2.2.1")
	}
	return nil, false
}

// LookupForm finds a version by the names that LookupVersion takes. It also takes the name of a byte-aligned one with
// -be behind it: the same built big-endian.
func LookupForm(name string) (v *Version, bigEndian, ok bool) {
	if v, ok = LookupVersion(name); ok {
		return v, false, true
	}
	plain, bigEndian := strings.CutSuffix(name, "-be")
	v, ok = LookupVersion(plain)
	if !bigEndian || !ok || v.Build.Dialect.Form != wire.ByteAligned {
		return nil, false, false
	}
	return v, true, true
}

// FormNames returns the names by which an implementation is chosen, each once. They are the names of all versions, then
// further ones of their dialects and builds, and then those that can be built big-endian. LookupForm takes all of them.
func FormNames() []string {
	names := VersionNames()
	for _, d := range wire.Dialects {
		names = append(names, d.Name)
	}
	for _, b := range wire.Builds {
		names = append(names, b.Name)
	}
	var bigEndian []string
	for _, name := range names {
		if _, _, ok := LookupForm(name + "-be"); ok {
			bigEndian = append(bigEndian, name+"-be")
		}
	}
	var once []string
	for _, name := range append(names, bigEndian...) {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}

// VersionNames returns the names of all versions.
func VersionNames() (names []string) {
	for _, v := range Versions {
		names = append(names, v.Name)
	}
	return names
}

// VersionOf returns the newest version that has a behaviour, or nil.
func VersionOf(b *Behaviour) *Version {
	for i := len(Versions) - 1; i >= 0; i-- {
		if Versions[i].Behaviour == b {
			return Versions[i]
		}
	}
	return nil
}

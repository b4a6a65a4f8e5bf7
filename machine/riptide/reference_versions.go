package riptide

import (
	"strings"
	"time"

	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Version is one state of the library, its port or the notes, as a reference
// endpoint can be it: what it writes (Build), how its sequencers behave
// (Behaviour), and in what its connections live another life.
type Version struct {
	Name      string
	Build     *wire.Build
	Behaviour *Behaviour

	// Echoes is set where a server whose application decides on connections
	// answers the first Connect with one of its own.
	Echoes bool
	// Answers is set where a client answers the Welcome with one of its own, and
	// a server holds the connection to stand only then: as its dialect says.
	Answers bool
	// RejectsPending is set where a Connect of a client on which the application
	// has not decided is answered by Reject, reason Pending.
	RejectsPending bool
	// AnswersEarly is set where a server answers heartbeats of clients whose
	// connection does not stand yet.
	AnswersEarly bool
	// PendingEnds is set where a server gives up a connection on which nobody
	// decides.
	PendingEnds bool
	// Forgets is after what time a rejected address may ask again over UDP:
	// forever where it is negative.
	Forgets time.Duration
	// Reasons shifts the reject reasons against those of its dialect.
	Reasons uint8
	// NoTimeout is set where a silent peer is never given up.
	NoTimeout bool
}

const (
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

// LookupVersion finds a version by its name, by that of its behaviour or build
// ("riptide@dev-n", "2.0.0"), or by that of a dialect, whose newest release it
// then is ("2.1").
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

// VersionNames returns the names of all versions.
func VersionNames() (names []string) {
	for _, v := range Versions {
		names = append(names, v.Name)
	}
	return names
}

// VersionOf returns the version that a behaviour is the behaviour of; where
// several share it, the newest.
func VersionOf(b *Behaviour) *Version {
	for i := len(Versions) - 1; i >= 0; i-- {
		if Versions[i].Behaviour == b {
			return Versions[i]
		}
	}
	return nil
}

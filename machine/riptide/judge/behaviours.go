package judge

import (
	"slices"

	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// BehavioursOf returns the names of the behaviours that a sender of a dialect can have, the one
// that its builds suggest first. The first open ones belong to its builds.
func BehavioursOf(d *wire.Dialect, builds wire.BuildSet) (names []string, open int) {
	own := riptide.BehaviourOf(d, builds)
	names = []string{own.Name}
	for _, b := range wire.Builds {
		if name := BehaviourOfBuild(b.Name); builds.Has(b) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if newest, ok := wire.LookupBuild("2.2.1"); ok && builds.Has(newest) {
		names = append(names, "riptide@main") // it writes the same
	}
	open = len(names)
	for _, name := range behavioursOfDialect(d) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, open
}

// BehaviourOfBuild returns the name of the behaviour of a build.
func BehaviourOfBuild(name string) string {
	switch name {
	case "notes":
		return "riptide@notes"
	case "2.0.0":
		return "riptide@2.0"
	case "dev-d":
		return "riptide@dev-d"
	case "dev-n":
		return "riptide@dev-n"
	case "2.1.0":
		return "riptide@2.1.0"
	case "pytide-2.0.0":
		return "pytide@2.0"
	case "pytide-2.1.0-alpha":
		return "pytide@2.1-alpha"
	}
	return "riptide@2.1.1-2.2.1"
}

// behavioursOfDialect returns the behaviours that the senders of a dialect can have.
func behavioursOfDialect(d *wire.Dialect) []string {
	switch d {
	case wire.Notes:
		return []string{"riptide@notes", "riptide@2.0", "riptide@dev-n"}
	case wire.V20:
		return []string{"riptide@notes", "riptide@2.0", "pytide@2.0"}
	case wire.DevD:
		return []string{"riptide@dev-d", "riptide@main"}
	case wire.DevN:
		return []string{"riptide@dev-n", "riptide@main"}
	}
	return []string{"riptide@2.1.0", "riptide@2.1.1-2.2.1", "riptide@main", "pytide@2.1-alpha"}
}

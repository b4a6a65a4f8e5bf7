package riptide

import (
	"strings"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide/judge"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// trait is a property of builds that packets show. The classifier narrows the builds by these.
type trait struct {
	has     func(b *wire.Build) bool
	yes, no string // what the packets of a side show that has it, and that has not
}

// traits lists them, the most telling one first.
var traits = []trait{
	{
		func(b *wire.Build) bool { return b.Cause == wire.CauseAlways },
		"its Acks carry 16 unread bits", "its Acks carry no unread bits",
	},
	{
		func(b *wire.Build) bool { return b.PingStays },
		"its heartbeats all have ping id 1", "its ping ids count up",
	},
	{
		func(b *wire.Build) bool { return b.FirstSequence == 2 },
		"its reliable ids begin at 2", "its reliable ids begin at 1",
	},
	{
		func(b *wire.Build) bool { return b.OneSequence },
		"every reliable message has id 1", "its reliable ids count up, and it acks them",
	},
	{
		func(b *wire.Build) bool { return b.StopReason == wire.UnpackedStop },
		"its stop reads as reason 0x50", "its stop has no reason 0x50",
	},
	{
		func(b *wire.Build) bool { return b.NoNotify },
		"it sends no Notify", "it sends Notify",
	},
	{
		func(b *wire.Build) bool { return b.RejectCopies > 1 },
		"it sends each Reject several times", "it sends each Reject once",
	},
}

// versionsOf returns the versions that a side can be. learned is what a run over the flow found out.
func versionsOf(c *dissect.Config, learned *machine.Facts, s machine.Side) dissect.Versions {
	sender := settingsOf(c).Senders[s]
	builds := sender.Builds
	if both := builds & tracker.Builds(learned)[s]; both != 0 {
		builds = both
	}
	v := dissect.Versions{Library: "Riptide"}
	for _, b := range wire.Builds {
		list := &v.Closed
		if builds.Has(b) {
			list = &v.Open
		}
		*list = append(*list, dissect.Release{
			Name: releaseName(b), Port: strings.HasPrefix(b.Name, portPrefix), Behaviour: judge.BehaviourOfBuild(b.Name),
		})
		if b.Name == newestRelease {
			*list = append(*list, dissect.Release{Name: "main (August 2026)", Behaviour: "riptide@main"}) // it writes the same
		}
	}
	v.Proof = proof(wire.BuildsOf(sender.Codec.Dialect), builds)
	return v
}

// newestRelease is the build that main writes like.
const newestRelease = "2.2.1"

// portPrefix begins the names of builds of Pytide.
const portPrefix = "pytide-"

// releaseName returns a build's name for people: "2.1.0", "Pytide 2.0.0", "source of February to July 2023".
func releaseName(b *wire.Build) string {
	switch {
	case strings.HasPrefix(b.Name, portPrefix):
		return "Pytide " + strings.TrimPrefix(b.Name, portPrefix)
	case b.Dialect == wire.DevD:
		return "source of February to July 2023"
	case b.Dialect == wire.DevN:
		return "source of July to November 2023"
	case b.Dialect == wire.Notes:
		return "as the Networking Notes say"
	}
	return b.Name
}

// proof returns what leaves only the open builds of all, as a phrase.
func proof(all, open wire.BuildSet) string {
	var said []string
	left := all
	for i := range traits {
		t := &traits[i]
		if left == open {
			break
		}
		text, keep := t.yes, t.has
		switch {
		case open.All(t.has):
		case open.Mixed(t.has):
			continue
		default:
			text, keep = t.no, func(b *wire.Build) bool { return !t.has(b) }
		}
		if rest := left & wire.Matching(keep); rest != left {
			left = rest
			said = append(said, text)
		}
	}
	return strings.Join(said, "; ")
}

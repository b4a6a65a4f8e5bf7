package protocol

import (
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Protocol is a protocol with its parts of the command line. Only the
// descriptor is required.
type Protocol struct {
	*dissect.Protocol
	Tools
	// Commands are commands that only this protocol has.
	Commands []func(a *app.App) *cobra.Command
	// Endings reports how its connections ended, for reports and the terminal
	// UI.
	Endings func() app.Endings
}

// Registry lists the protocols of a program, in the order in which they are
// tried and shown.
type Registry []Protocol

// Descriptors returns the registry of descriptors for the analysis.
func (r Registry) Descriptors() *dissect.Registry {
	var list []*dissect.Protocol
	for i := range r {
		list = append(list, r[i].Protocol)
	}
	return dissect.NewRegistry(list...)
}

// Endings returns an app.Endings that covers all protocols.
func (r Registry) Endings() app.Endings {
	var all allEndings
	for i := range r {
		if r[i].Endings != nil {
			all = append(all, r[i].Endings())
		}
	}
	return all
}

// allEndings combines the endings of several protocols, each of which reads its
// own flows.
type allEndings []app.Endings

// Take implements app.Endings.
func (l allEndings) Take(r *analyze.Record) {
	for _, x := range l {
		x.Take(r)
	}
}

// Forget implements app.Endings.
func (l allEndings) Forget(f *analyze.Flow, why analyze.Reason) {
	for _, x := range l {
		x.Forget(f, why)
	}
}

// Ended implements app.Endings.
func (l allEndings) Ended(at machine.Instant) (list []app.Ending) {
	for _, x := range l {
		list = append(list, x.Ended(at)...)
	}
	return list
}

package protocol

import (
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/labs"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Protocol is a protocol with what the command line can do with it. Only the
// descriptor must be there.
type Protocol struct {
	*dissect.Protocol
	Simulator *simulate.Simulator // for simulate
	Lab       *labs.Protocol      // for lab
	// Commands are those that only this protocol has.
	Commands []func(a *app.App) *cobra.Command
	// Endings tells how its connections ended, for reports and the terminal UI.
	Endings func() app.Endings
}

// Registry lists the protocols that a program knows, in the order in which they are
// tried and shown.
type Registry []Protocol

// Descriptors returns what the analysis has to know of the protocols.
func (r Registry) Descriptors() *dissect.Registry {
	var list []*dissect.Protocol
	for i := range r {
		list = append(list, r[i].Protocol)
	}
	return dissect.NewRegistry(list...)
}

// Simulators returns those that can be simulated.
func (r Registry) Simulators() (list simulate.Simulators) {
	for i := range r {
		if r[i].Simulator != nil {
			list = append(list, r[i].Simulator)
		}
	}
	return list
}

// Labs returns those that can be run on real sockets.
func (r Registry) Labs() (list []*labs.Protocol) {
	for i := range r {
		if r[i].Lab != nil {
			list = append(list, r[i].Lab)
		}
	}
	return list
}

// Endings returns what tells how the connections of any protocol ended.
func (r Registry) Endings() app.Endings {
	var all allEndings
	for i := range r {
		if r[i].Endings != nil {
			all = append(all, r[i].Endings())
		}
	}
	return all
}

// allEndings are those of several protocols, each of which looks at its own flows.
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

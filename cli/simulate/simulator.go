package simulate

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Simulator describes a protocol to `ackscope simulate`.
type Simulator struct {
	Name string // the part of --protocol before the colon
	// Usual is the default after the colon, if this is the first protocol.
	Usual string
	// Form is the form of --protocol in the help.
	Form string
	// Words lists what can follow the colon.
	Words func(p *dissect.Protocol) []string
	// Examples are complete lines for the command's help.
	Examples string
	// Begin adds the flags that only this protocol has. Its result prepares a
	// run from all flags.
	Begin func(p *pflag.FlagSet) func(a *app.App, f *Flags) (Run, error)
	// Takes lists which shared flags of some protocols it uses.
	Takes []string
	// Remembered lists the flags that are needed to make the endpoints again,
	// besides those of every protocol. The journal records them.
	Remembered []string
	// RememberedIfSet is the same for flags that journals leave out at their defaults.
	RememberedIfSet []string
	// Completions are the values of its own flags for completion, by flag.
	Completions map[string][]string
	Faults      []*machine.Fault // of its reference
}

func (p *Simulator) hasFault(name string) bool {
	return slices.ContainsFunc(p.Faults, func(x *machine.Fault) bool { return x.Name == name })
}

// Simulators are all simulators of the program.
type Simulators []*Simulator

// lookup returns the simulator with a name, or nil when there is none.
func (l Simulators) lookup(name string) *Simulator {
	for _, p := range l {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// names returns the sorted names.
func (l Simulators) names() (names []string) {
	for _, p := range l {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// words returns the possible values of --protocol.
func (l Simulators) words(registry *dissect.Registry) (list []string) {
	for _, p := range registry.Protocols() {
		if x := l.lookup(p.Name); x != nil {
			for _, word := range x.Words(p) {
				list = append(list, p.Name+":"+word)
			}
		}
	}
	return list
}

// usual returns the default of --protocol.
func (l Simulators) usual() string {
	if len(l) == 0 {
		return ""
	}
	return l[0].Name + ":" + l[0].Usual
}

// forms returns the forms of --protocol. The first one is marked as the flag's
// value.
func (l Simulators) forms() string {
	var list []string
	for i, p := range l {
		form := p.Form
		if i == 0 {
			form = "`" + form + "`"
		}
		list = append(list, form)
	}
	return strings.Join(list, ", or ")
}

// examples returns the examples of all simulators.
func (l Simulators) examples() (text string) {
	for _, p := range l {
		text += p.Examples
	}
	return text
}

// taking returns the start of a flag's help: the protocols that use it.
func (l Simulators) taking(flag string) string {
	var names []string
	for _, p := range l {
		if slices.Contains(p.Takes, flag) {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, ", ") + ": "
}

package simulate

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Simulator is a protocol that can be simulated.
type Simulator struct {
	Name string // before the colon of --protocol
	// Usual is what follows the colon where nothing is said, if this is the first protocol.
	Usual string
	// Form is what --protocol can be, for its help.
	Form string
	// Words lists what can follow the colon.
	Words func(p *dissect.Protocol) []string
	// Examples are for the command's help: lines that end.
	Examples string
	// Begin names the flags that only this protocol has. What it gives makes a run
	// ready as all flags say.
	Begin func(p *pflag.FlagSet) func(a *app.App, f *Flags) (Run, error)
	// Takes names the flags that it takes of those that only some protocols do.
	Takes []string
	// Remembered names the flags that it takes to make the endpoints again, for the
	// journal, beside those of every protocol.
	Remembered []string
	// Completions are the words of its own flags, by flag.
	Completions map[string][]string
	Faults      []*machine.Fault // of its reference
}

func (p *Simulator) hasFault(name string) bool {
	return slices.ContainsFunc(p.Faults, func(x *machine.Fault) bool { return x.Name == name })
}

// Simulators are all that the program knows.
type Simulators []*Simulator

// lookup finds one by its name; nil for none.
func (l Simulators) lookup(name string) *Simulator {
	for _, p := range l {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// names lists their names, sorted.
func (l Simulators) names() (names []string) {
	for _, p := range l {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// words lists what --protocol can be.
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

// usual returns what --protocol is where nothing is said.
func (l Simulators) usual() string {
	if len(l) == 0 {
		return ""
	}
	return l[0].Name + ":" + l[0].Usual
}

// forms lists what --protocol can be; the first stands for the flag's value.
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

// examples returns those of all.
func (l Simulators) examples() (text string) {
	for _, p := range l {
		text += p.Examples
	}
	return text
}

// taking begins the help of a flag with the protocols that take it.
func (l Simulators) taking(flag string) string {
	var names []string
	for _, p := range l {
		if slices.Contains(p.Takes, flag) {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, ", ") + ": "
}

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/dissect"
	"github.com/spf13/cobra"
)

// wrong reports whether the endpoint of a side has the fault.
func (f *simulateFlags) wrong(side int) bool {
	return f.fault != "" && (f.faulty == "both" || f.faulty == [...]string{"a", "b"}[side])
}

// simulator is a protocol that can be simulated.
type simulator struct {
	name string // before the colon of --protocol
	// begin makes ready what a run needs: errors are of the flags.
	begin func(a *app, f *simulateFlags) (cast, error)
	// words lists what can follow the colon.
	words  func(p *dissect.Protocol) []string
	faults []faultLine // of its reference
}

// faultLine is a fault of a reference as it is listed.
type faultLine struct {
	name, doc, unobservable, explained string
	scenario                           []string
}

func (p *simulator) hasFault(name string) bool {
	return slices.ContainsFunc(p.faults, func(x faultLine) bool { return x.name == name })
}

// simulators are all that the program knows.
type simulators []*simulator

// lookup finds one by its name; nil for none.
func (l simulators) lookup(name string) *simulator {
	for _, p := range l {
		if p.name == name {
			return p
		}
	}
	return nil
}

// names lists their names, sorted.
func (l simulators) names() (names []string) {
	for _, p := range l {
		names = append(names, p.name)
	}
	slices.Sort(names)
	return names
}

// words lists what --protocol can be.
func (l simulators) words(registry *dissect.Registry) (list []string) {
	for _, p := range registry.Protocols() {
		if x := l.lookup(p.Name); x != nil {
			for _, word := range x.words(p) {
				list = append(list, p.Name+":"+word)
			}
		}
	}
	return list
}

// unknownFault says which fault was likely meant, or whose it is.
func (l simulators) unknownFault(protocol, name string) error {
	var names []string
	for _, p := range l {
		for _, x := range p.faults {
			switch {
			case p.name == protocol:
				names = append(names, x.name)
			case x.name == name:
				return fmt.Errorf("--fault %q: %s has no such fault, %s has it: --protocol %s", name, protocol, p.name, p.name)
			}
		}
	}
	return unknownName("--fault", name, names)
}

// completeFaults completes --fault: the faults of the protocol that --protocol names.
func (l simulators) completeFaults(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	of, _, _ := strings.Cut(c.Flags().Lookup("protocol").Value.String(), ":")
	list := []cobra.Completion{cobra.CompletionWithDesc("list", "name all")}
	if p := l.lookup(of); p != nil {
		for _, x := range p.faults {
			list = append(list, cobra.CompletionWithDesc(x.name, x.doc))
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// listFaults prints them: of one protocol, or of all.
func (a *app) listFaults(protocols simulators, of string) error {
	if of != "" && protocols.lookup(of) == nil {
		return unknownName("--protocol", of, protocols.names())
	}
	for _, p := range protocols {
		if of != "" && p.name != of {
			continue
		}
		if err := a.listFaultsOf(p); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) listFaultsOf(p *simulator) error {
	w := a.writer()
	for _, x := range p.faults {
		if a.flags.json {
			var o object
			o.begin()
			o.str("protocol", p.name)
			o.str("fault", x.name)
			o.str("doc", x.doc)
			o.word("unobservable", x.unobservable)
			o.word("explained", x.explained)
			o.str("scenario", strings.Join(x.scenario, " "))
			if err := o.end(w); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%-8s %-28s %s\n", p.name, x.name, x.doc)
		if x.unobservable != "" {
			fmt.Fprintf(w, "%38s never on the wire: %s\n", "", x.unobservable)
		}
		if x.explained != "" {
			fmt.Fprintf(w, "%38s a right one could send the same: %s\n", "", x.explained)
		} else if len(x.scenario) > 0 && x.unobservable == "" {
			fmt.Fprintf(w, "%38s shows with %s\n", "", strings.Join(x.scenario, " "))
		}
	}
	return nil
}

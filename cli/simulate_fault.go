package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	gafferendpoint "github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	srdpendpoint "github.com/ackscope/ackscope/machine/srdp/endpoint"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// wrong reports whether the endpoint of a side has the fault.
func (f *simulateFlags) wrong(side int) bool {
	return f.fault != "" && (f.faulty == "both" || f.faulty == [...]string{"a", "b"}[side])
}

// faultLine is one line of the list of faults.
type faultLine struct {
	protocol, name, doc, unobservable, explained string
	scenario                                     []string
}

// faultLines lists the faults of all references.
func faultLines() (lines []faultLine) {
	for _, x := range gafferendpoint.Faults {
		lines = append(lines, faultLine{"gaffer", x.Name, x.Doc, x.Unobservable, x.Explained, x.Scenario})
	}
	for _, x := range endpoint.Faults {
		lines = append(lines, faultLine{"riptide", x.Name, x.Doc, x.Unobservable, x.Explained, x.Scenario})
	}
	for _, x := range srdpendpoint.Faults {
		lines = append(lines, faultLine{"srdp", x.Name, x.Doc, x.Unobservable, x.Explained, x.Scenario})
	}
	return lines
}

// unknownFault says which fault was likely meant, or whose it is.
func unknownFault(protocol, name string) error {
	var names []string
	for _, x := range faultLines() {
		switch {
		case x.protocol == protocol:
			names = append(names, x.name)
		case x.name == name:
			return fmt.Errorf("--fault %q: %s has no such fault, %s has it: --protocol %s", name, protocol, x.protocol, x.protocol)
		}
	}
	return unknownName("--fault", name, names)
}

// completeFaults completes --fault: the faults of the protocol that --protocol names.
func completeFaults(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	of, _, _ := strings.Cut(c.Flags().Lookup("protocol").Value.String(), ":")
	list := []cobra.Completion{cobra.CompletionWithDesc("list", "name all")}
	for _, x := range faultLines() {
		if x.protocol == of {
			list = append(list, cobra.CompletionWithDesc(x.name, x.doc))
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// castNames lists what --protocol can be: protocols, and their profiles and versions.
func (a *app) castNames() (list []string) {
	for _, p := range a.registry.Protocols() {
		if casts[p.Name] == nil {
			continue
		}
		if p.Name == "riptide" {
			for _, name := range riptide.VersionNames() {
				list = append(list, p.Name+":"+name)
			}
			continue
		}
		for i := range p.Profiles {
			if x, ok := p.Profiles[i].Config.Profile.(*wire.Profile); !ok || x.HasAcks() && x.Form != wire.FormNetcode {
				list = append(list, p.Name+":"+p.Profiles[i].Name)
			}
		}
	}
	return list
}

// listFaults prints them: of one protocol, or of all.
func (a *app) listFaults(of string) error {
	if of != "" && casts[of] == nil {
		return unknownName("--protocol", of, slices.Sorted(maps.Keys(casts)))
	}
	w := a.writer()
	for _, x := range faultLines() {
		if of != "" && x.protocol != of {
			continue
		}
		if a.flags.json {
			var o object
			o.begin()
			o.str("protocol", x.protocol)
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
		fmt.Fprintf(w, "%-8s %-28s %s\n", x.protocol, x.name, x.doc)
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

package simulate

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
)

// Wrong reports whether the endpoint of a side has the fault.
func (f *Flags) Wrong(side int) bool {
	return f.Fault != "" && (f.Faulty == "both" || f.Faulty == [...]string{"a", "b"}[side])
}

// Faults returns the fault of each side's endpoint, or nil for a side without
// one.
func Faults[F any](f *Flags, lookup func(name string) *F) (faults [2]*F) {
	for side := range faults {
		if f.Wrong(side) {
			faults[side] = lookup(f.Fault)
		}
	}
	return faults
}

// unknownFault returns an error that suggests a similar fault, or the protocol
// that has it.
func (l Simulators) unknownFault(protocol, name string) error {
	var names []string
	for _, p := range l {
		for _, x := range p.Faults {
			switch {
			case p.Name == protocol:
				names = append(names, x.Name)
			case x.Name == name:
				return fmt.Errorf("--fault %q: %s has no such fault, %s has it: --protocol %s", name, protocol, p.Name, p.Name)
			}
		}
	}
	return app.UnknownName("--fault", name, names)
}

// completeFaults completes --fault with the faults of the protocol of
// --protocol.
func (l Simulators) completeFaults(c *cobra.Command, _ []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective,
) {
	of, _, _ := strings.Cut(c.Flags().Lookup("protocol").Value.String(), ":")
	list := []cobra.Completion{cobra.CompletionWithDesc("list", "name all")}
	if p := l.lookup(of); p != nil {
		for _, x := range p.Faults {
			list = append(list, cobra.CompletionWithDesc(x.Name, x.Doc))
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// listFaults prints the faults of one protocol, or of all.
func listFaults(a *app.App, protocols Simulators, of string) error {
	if of != "" && protocols.lookup(of) == nil {
		return app.UnknownName("--protocol", of, protocols.names())
	}
	for _, p := range protocols {
		if of != "" && p.Name != of {
			continue
		}
		if err := listFaultsOf(a, p); err != nil {
			return err
		}
	}
	return nil
}

func listFaultsOf(a *app.App, p *Simulator) error {
	w := a.Writer()
	for _, x := range p.Faults {
		if a.Flags.JSON {
			var o app.Object
			o.Begin()
			o.Str("protocol", p.Name)
			o.Str("fault", x.Name)
			o.Str("doc", x.Doc)
			o.Word("unobservable", x.Unobservable)
			o.Word("explained", x.Explained)
			o.Str("scenario", strings.Join(x.Scenario, " "))
			if err := o.End(w); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%-8s %-28s %s\n", p.Name, x.Name, x.Doc)
		if x.Unobservable != "" {
			fmt.Fprintf(w, "%38s no capture can show it: %s\n", "", x.Unobservable)
		}
		if x.Explained != "" {
			fmt.Fprintf(w, "%38s an endpoint without the fault could send the same: %s\n", "", x.Explained)
		} else if len(x.Scenario) > 0 && x.Unobservable == "" {
			fmt.Fprintf(w, "%38s shows with %s\n", "", strings.Join(x.Scenario, " "))
		}
	}
	return nil
}

package main

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/srdp"
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
	for _, x := range gaffer.Faults {
		lines = append(lines, faultLine{"gaffer", x.Name, x.Doc, x.Unobservable, x.Explained, x.Scenario})
	}
	for _, x := range riptide.Faults {
		lines = append(lines, faultLine{"riptide", x.Name, x.Doc, x.Unobservable, x.Explained, x.Scenario})
	}
	for _, x := range srdp.Faults {
		lines = append(lines, faultLine{"srdp", x.Name, x.Doc, x.Unobservable, x.Explained, x.Scenario})
	}
	return lines
}

// listFaults prints them.
func (a *app) listFaults() error {
	w := a.writer()
	for _, x := range faultLines() {
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

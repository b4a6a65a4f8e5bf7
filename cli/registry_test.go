package cli

import "github.com/ackscope/ackscope/dissect"

// known is what cmd/ackscope brings to the command line.
var known = Registry{Gaffer, Riptide, SRDP}

func protocols() *dissect.Registry { return known.Descriptors() }

// run runs one command line and gives the exit code.
func run(args []string, s streams) int { return known.run(args, s) }

// faultOf is a fault of a protocol's reference, as the grids run it.
type faultOf struct {
	protocol string
	faultLine
}

// allFaults lists the faults of all references.
func allFaults() (list []faultOf) {
	for _, p := range known.Simulators() {
		for _, x := range p.faults {
			list = append(list, faultOf{p.name, x})
		}
	}
	return list
}

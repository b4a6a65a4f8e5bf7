package cli

import (
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/protocol/gaffer"
	"github.com/ackscope/ackscope/cli/protocol/riptide"
	"github.com/ackscope/ackscope/cli/protocol/srdp"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// known is the registry that cmd/ackscope passes to the command line.
var known = protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol}

func protocols() *dissect.Registry { return known.Descriptors() }

// runKnown runs one command line and returns the exit code.
func runKnown(args []string, s app.Streams) int { return run(known, args, s) }

// faultOf is a fault of a protocol's reference.
type faultOf struct {
	protocol string
	machine.Fault
}

// allFaults returns the faults of all references.
func allFaults() (list []faultOf) {
	for _, p := range known.Simulators() {
		for _, x := range p.Faults {
			list = append(list, faultOf{p.Name, *x})
		}
	}
	return list
}

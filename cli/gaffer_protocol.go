package cli

import (
	dissector "github.com/ackscope/ackscope/dissect/gaffer"
)

// Gaffer is the Gaffer family on the command line.
var Gaffer = Protocol{Protocol: dissector.Protocol, Simulator: &gafferSimulator, Lab: &labGaffer}

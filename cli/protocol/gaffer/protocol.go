package gaffer

import (
	"github.com/ackscope/ackscope/cli/protocol"
	dissector "github.com/ackscope/ackscope/dissect/gaffer"
)

// Gaffer is the Gaffer family on the command line.
var Gaffer = protocol.Protocol{Protocol: dissector.Protocol, Simulator: &gafferSimulator, Lab: &labGaffer}

package cli

import (
	dissector "github.com/ackscope/ackscope/dissect/srdp"
)

// SRDP is SRDP on the command line.
var SRDP = Protocol{Protocol: dissector.Protocol, Simulator: &srdpSimulator, Lab: &labSRDP}

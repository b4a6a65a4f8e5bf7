package srdp

import (
	"github.com/ackscope/ackscope/cli/protocol"
	dissector "github.com/ackscope/ackscope/dissect/srdp"
)

// SRDP is SRDP on the command line.
var SRDP = protocol.Protocol{Protocol: dissector.Protocol, Simulator: &srdpSimulator, Lab: &labSRDP}

package srdp

import (
	"github.com/ackscope/ackscope/cli/protocol"
	dissector "github.com/ackscope/ackscope/dissect/srdp"
)

// Protocol is SRDP on the command line.
var Protocol = protocol.Protocol{Protocol: dissector.Protocol, Tools: tools}

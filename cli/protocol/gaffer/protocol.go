package gaffer

import (
	"github.com/ackscope/ackscope/cli/protocol"
	dissector "github.com/ackscope/ackscope/dissect/gaffer"
)

// Protocol is the Gaffer family on the command line.
var Protocol = protocol.Protocol{
	Protocol: dissector.Protocol, Tools: tools, Endings: newEndings,
}

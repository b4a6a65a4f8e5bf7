package riptide

import (
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/protocol"
	dissector "github.com/ackscope/ackscope/dissect/riptide"
)

// Protocol is Riptide on the command line.
var Protocol = protocol.Protocol{
	Protocol: dissector.Protocol, Tools: tools,
	Commands: []func(*app.App) *cobra.Command{guessCommand}, Endings: newEndings,
}

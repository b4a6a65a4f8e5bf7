package riptide

import (
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/protocol"
	dissector "github.com/ackscope/ackscope/dissect/riptide"
)

// Riptide is Riptide on the command line.
var Riptide = protocol.Protocol{Protocol: dissector.Protocol, Simulator: &riptideSimulator, Lab: &labRiptide, Commands: []func(*app.App) *cobra.Command{autopsyCommand, guessCommand}, Endings: newEndings}

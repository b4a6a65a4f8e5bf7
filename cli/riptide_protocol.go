package cli

import (
	"github.com/spf13/cobra"

	dissector "github.com/ackscope/ackscope/dissect/riptide"
)

// Riptide is Riptide on the command line.
var Riptide = Protocol{Protocol: dissector.Protocol, Simulator: &riptideSimulator, Lab: &labRiptide, Commands: []func(*app) *cobra.Command{autopsyCommand, guessCommand}, Endings: newEndings}

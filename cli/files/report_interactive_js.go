package files

import (
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
)

// interactiveFlags is empty: the page in the browser cannot write itself.
type interactiveFlags struct{ on bool }

func (f *interactiveFlags) register(*app.App, *cobra.Command) {}

func (f *interactiveFlags) check(*cobra.Command, string) error { return nil }

func reportInteractive(*app.App, []string, *reportFlags) error { return nil }

//go:build !js

package cli

import (
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/about"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/batching"
	"github.com/ackscope/ackscope/cli/comparing"
	"github.com/ackscope/ackscope/cli/files"
	"github.com/ackscope/ackscope/cli/labs"
	"github.com/ackscope/ackscope/cli/listing"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/replaying"
	"github.com/ackscope/ackscope/cli/serving"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/cli/state"
	"github.com/ackscope/ackscope/cli/terminal"
)

// commands returns every command of the program, in the order of its help.
func commands(r protocol.Registry, a *app.App) []*cobra.Command {
	return []*cobra.Command{
		terminal.TUICommand(a),
		serving.WebCommand(a),
		listing.OverviewCommand(a),
		listing.FlowsCommand(a),
		listing.PacketsCommand(a),
		listing.EventsCommand(a),
		listing.MessagesCommand(a),
		listing.FindingsCommand(a),
		listing.LedgerCommand(a),
		listing.GraphCommand(a),
		listing.AutopsyCommand(a),
		files.ReportCommand(a),
		comparing.CompareCommand(a),
		batching.Command(a),
		state.StateCommand(a),
		about.ExplainCommand(a),
		about.ProtocolsCommand(a),
		about.ThresholdsCommand(a),
		about.FieldsCommand(a),
		simulate.Command(a, r.Simulators()),
		replaying.ReplayCommand(a),
		replaying.ReduceCommand(a),
		files.MergeCommand(a),
		files.ExportCommand(a),
		files.AnonymiseCommand(a),
		about.SchemaCommand(a),
		about.ManCommand(a),
		about.VersionCommand(a),
		files.CaptureCommand(a),
		labs.Command(a, r.Labs()),
	}
}

// spelled rewrites the short forms of command lines.
func spelled(r protocol.Registry, root *cobra.Command, args []string) []string {
	return labs.Spelled(root, args, r.Labs())
}

// plainVersion has --version print the version line and nothing else.
func plainVersion(root *cobra.Command) { root.SetVersionTemplate("{{.Version}}") }

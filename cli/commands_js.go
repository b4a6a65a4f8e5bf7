package cli

import (
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/about"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/files"
	"github.com/ackscope/ackscope/cli/listing"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/replaying"
	"github.com/ackscope/ackscope/cli/state"
)

// commands returns the commands that work in a browser: those that read captures and need neither
// a terminal nor the network.
func commands(_ protocol.Registry, a *app.App) []*cobra.Command {
	return []*cobra.Command{
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
		state.StateCommand(a),
		about.ExplainCommand(a),
		about.ProtocolsCommand(a),
		about.FieldsCommand(a),
		replaying.ReplayCommand(a),
		about.SchemaCommand(a),
		about.VersionCommand(a),
	}
}

// spelled returns the command line as it is: no command here has a short form.
func spelled(_ protocol.Registry, _ *cobra.Command, args []string) []string { return args }

// plainVersion does nothing: the page asks for the version by its command. A template would have the
// linker keep every method of the program, since a template calls methods by name.
func plainVersion(*cobra.Command) {}

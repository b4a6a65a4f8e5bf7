package about

import (
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
)

// VersionCommand builds `ackscope version`, which prints what --version does.
func VersionCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Which version of ackscope this is",
		Long: `version prints the version of ackscope, of Go, and the system that it was built for. Put
the line into reports of bugs. A build from a clone names its commit. --version prints the same.`,
		Example: "  ackscope version\n  ackscope --version",
		Args:    app.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Writer().WriteString(app.VersionLine())
			return err
		},
	}
}

package cli

import (
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/listing"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/state"
)

// Browse opens a capture for a page that shows its packets and states. args are flags of the
// program and the capture, without a command. The browser writes to s.Out until it is closed;
// flush passes on what it wrote. The browser is nil if code is not 0; s.Err says why.
func Browse(r protocol.Registry, args []string, s app.Streams) (b *state.Browser, flush func() error, code int) {
	code = run(r, append([]string{"browse"}, args...), s, func(a *app.App) *cobra.Command {
		flush = a.Flush
		return &cobra.Command{
			Use: "browse FILE", Hidden: true,
			RunE: func(_ *cobra.Command, args []string) (err error) {
				b, err = state.Browse(a, args)
				return err
			},
		}
	})
	return b, flush, code
}

// Verdicts replays captures for an overview in another process, whose Streams.Verdicts reads what it
// writes. args are flags of the program and the captures. They have no command.
func Verdicts(r protocol.Registry, args []string, s app.Streams) (code int) {
	var used *app.App
	code = run(r, append([]string{"judge"}, args...), s, func(a *app.App) *cobra.Command {
		used = a
		return listing.JudgeCommand(a)
	})
	used.Forget()
	return code
}

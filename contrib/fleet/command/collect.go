package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/contrib/fleet/collect"
	"github.com/ackscope/ackscope/contrib/fleet/link"
)

// collect builds `ackscope-fleet collect`.
func (p *program) collect() *cobra.Command {
	l := link.Options{Name: "ackscope-fleet collect", Notice: p.notice}
	o := collect.Options{Notice: p.notice}
	var unread string
	c := &cobra.Command{
		Use: "collect -o DIR", Args: cobra.NoArgs,
		Short: "Write flows and findings as Parquet files",
		Long: `collect writes what the hub keeps to DIR/flows/site=SITE and DIR/findings/site=SITE.
The files are the position: a collector that was killed goes on after the last row. When
the disk has a file, the hub lets its rows go. A second collector of a site gives up.

Rows of sensors of another version stay as they came, in DIR/unread. A collector that knows
their version moves them to the tables when it starts.`,
		Example: `  ackscope-fleet collect --hub tls://hub:4222 --key operator.key -o tables`,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Folder == "" {
				return errors.New("expected -o DIR, the folder of the tables")
			}
			var err error
			if o.Unread, err = app.ParseSize(unread); err != nil {
				return fmt.Errorf("--unread-size: %w", err)
			}
			hub, err := link.Connect(l)
			if err != nil {
				return err
			}
			defer hub.Close()
			x, err := collect.New(hub, o)
			if err != nil {
				return err
			}
			err = x.Run(c.Context())
			p.notice(fmt.Sprintf("collect: %d rows in files, %d came again, %d never came, %d of other versions kept, "+
				"%d messages were no rows", x.Rows(), x.Again(), x.Missing(), x.Unread(), x.Refused()))
			return err
		},
	}
	f := c.Flags()
	l.Register(f)
	f.StringVarP(&o.Folder, "output", "o", "", "`DIR` of the tables")
	f.StringSliceVar(&o.Sites, "site", nil, "`NAME` of a site, repeatable (default: all that the hub has)")
	f.IntVar(&o.Rows, "rows", collect.DefaultRows, "most rows of a file")
	f.DurationVar(&o.Every, "every", collect.DefaultEvery, "`TIME` that a row waits for its file at most")
	f.StringVar(&unread, "unread-size", "256MiB", "`SIZE` of rows of other versions, for each site and kind of rows")
	f.BoolVar(&o.Keep, "keep", false, "leave the rows at the hub")
	return c
}

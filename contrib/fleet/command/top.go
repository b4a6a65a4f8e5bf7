package command

import (
	"context"
	"fmt"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/contrib/fleet/collect"
	"github.com/ackscope/ackscope/contrib/fleet/fetch"
	"github.com/ackscope/ackscope/contrib/fleet/link"
	"github.com/ackscope/ackscope/contrib/fleet/top"
)

// shown is how many findings the plain form lists.
const shown = 20

// top builds `ackscope-fleet top`.
func (p *program) top() *cobra.Command {
	x := &fetchFlags{link: link.Options{Name: "ackscope-fleet top"}}
	var plain bool
	var after time.Duration
	c := &cobra.Command{
		Use: "top", Args: cobra.NoArgs,
		Short: "Show the fleet in the terminal",
		Long: `top shows the sensors, the findings as they come, and what the losses of all sites have
in common. Enter fetches the packets of a finding and opens them. It shows what is told
from now on; with --tables, the findings of before too.`,
		RunE: func(c *cobra.Command, _ []string) error {
			hub, err := link.Connect(x.link)
			if err != nil {
				return err
			}
			defer hub.Close()
			f := top.New()
			stop, err := f.Watch(hub)
			if err != nil {
				return err
			}
			defer stop()
			if x.tables != "" {
				list, err := fetch.Find(x.tables, fetch.Choice{}, shown)
				if err != nil {
					return err
				}
				f.Preload(list)
				unread, err := collect.Unread(x.tables)
				if err != nil {
					return err
				}
				f.SetUnread(unread)
			}
			if plain || x.json {
				select {
				case <-c.Context().Done():
				case <-time.After(after):
				}
				s := f.Snapshot()
				return p.print(x.json, s.Text(time.Now(), shown), s)
			}
			return p.screen(c.Context(), f, hub, x)
		},
	}
	fl := c.Flags()
	x.link.Register(fl)
	fl.StringVar(&x.tables, "tables", "", "`DIR` that collect writes: show its newest findings too")
	fl.StringVarP(&x.output, "output", "o", ".", "`DIR` for fetched captures")
	fl.BoolVar(&x.fetch.Plain, "plain-packets", false, "ask for packets as captured")
	fl.BoolVar(&plain, "plain", false, "print the fleet once, as text")
	fl.BoolVar(&x.json, "json", false, "print the fleet once, as JSON")
	fl.DurationVar(&after, "wait", 12*time.Second, "with --plain and --json: `TIME` to listen; sensors report every 10 s")
	return c
}

// screen shows the fleet until the user ends it.
func (p *program) screen(ctx context.Context, f *top.Fleet, hub *nats.Conn, x *fetchFlags) error {
	screen, err := tcell.NewScreen()
	if err != nil {
		return err
	}
	s := &top.Screen{Fleet: f, Open: func(ctx context.Context, found *top.Finding) string {
		got, err := p.fetchOne(ctx, hub, &found.Finding, x)
		if err != nil {
			return err.Error()
		}
		if code := openTUI(got.Path); code != exitFine {
			return fmt.Sprintf("%s: the terminal UI ended with %d", got.Path, code)
		}
		return "fetched " + got.Path
	}}
	return s.Run(ctx, screen)
}

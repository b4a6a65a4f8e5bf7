package listing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/show"
)

// AutopsyCommand returns the command that says how connections ended.
func AutopsyCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "autopsy [FILE...]",
		Short: "How each connection ended: what was exchanged last, what was unacked, who gave up",
		Long: `autopsy gives a page to each Riptide connection that ended: the last exchange that went well
each way, what waited for an ack and how often it had been sent, which limits were reached,
who fell silent or said goodbye first, and what the other side can have known of it.

A netcode connection has a page if it never came about: what the client asked, and why no
connection followed, as far as the capture shows it.`,
		Example: `  ackscope autopsy match.pcapng
  ackscope autopsy --json match.pcapng | jq 'select(.ended == "silence")'`,
		RunE: func(_ *cobra.Command, args []string) error { return autopsy(a, args) },
	}
	reader.JoinFlag(a, c)
	return c
}

func autopsy(a *app.App, args []string) error {
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	return reader.Each(a, args, func(r *reader.Recording) error { return autopsyOf(a, r, paint) })
}

// autopsyOf writes how the connections of a recording ended.
func autopsyOf(a *app.App, from *reader.Recording, paint show.Painter) error {
	m := a.NewEndings()
	a.Memory.Gone = m.Forget
	s, in, err := reader.Study(a, from, m.Take)
	if in != nil {
		defer in.Close()
	}
	if s == nil {
		return err
	}
	if !a.Flags.JSON {
		if err := reader.Heading(a, from); err != nil {
			return err
		}
	}
	_, end := s.Span()
	endings := m.Ended(end)
	slices.SortStableFunc(endings, func(x, y app.Ending) int { return x.Flow.ID - y.Flow.ID })
	for i := range endings {
		x := &endings[i]
		if a.Flags.JSON {
			if err := autopsyObject(a, from, x); err != nil {
				return err
			}
			continue
		}
		page := x.Page(paint)
		if i > 0 {
			page = append([]byte("\n"), page...)
		}
		if _, err := a.Writer().Write(page); err != nil {
			return err
		}
	}
	if len(endings) == 0 && !a.Flags.JSON {
		fmt.Fprintln(a.Writer(), "no connection ended in this capture")
	}
	return a.Ended(err)
}

func autopsyObject(a *app.App, from *reader.Recording, x *app.Ending) error {
	f := x.Flow
	var o app.Object
	o.Begin()
	o.File(from.File(f.FirstRef))
	o.Uint("flow", uint64(f.ID))
	o.Str("protocol", f.Protocol.Name)
	o.Str("dialect", f.Config().Dialect)
	o.Addr("a", f.A)
	o.Addr("b", f.B)
	o.Str("ended", x.How)
	o.Str("story", strings.Join(x.Story, " "))
	if x.Object != nil {
		x.Object(&o)
	}
	return o.End(a.Writer())
}

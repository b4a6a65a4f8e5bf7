package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/protocol/gaffer"
	"github.com/ackscope/ackscope/cli/protocol/riptide"
	"github.com/ackscope/ackscope/cli/protocol/srdp"
	"github.com/ackscope/ackscope/contrib/fleet/fetch"
	"github.com/ackscope/ackscope/contrib/fleet/link"
	"github.com/ackscope/ackscope/protocols"
)

// fetchFlags are the flags of `ackscope-fleet fetch`.
type fetchFlags struct {
	link   link.Options
	fetch  fetch.Options
	choice fetch.Choice
	tables string
	output string
	most   int
	list   bool
	json   bool
	open   bool
}

// fetch builds `ackscope-fleet fetch`.
func (p *program) fetch() *cobra.Command {
	x := &fetchFlags{link: link.Options{Name: "ackscope-fleet fetch"}}
	c := &cobra.Command{
		Use: "fetch --tables DIR", Args: cobra.NoArgs,
		Short: "Bring the packets around a finding from its sensor",
		Long: `fetch finds a finding in the tables of "collect", and asks its sensor for the packets of
its flow. The sensor cuts them from its ring. They come anonymised, unless you ask for
--plain and the sensor's operator allows that. fetch checks the digest, analyses the
file, and says whether it shows the finding again.`,
		Example: `  ackscope-fleet fetch --tables tables --list
  ackscope-fleet fetch --tables tables --rule loss-burst --open`,
		RunE: func(c *cobra.Command, _ []string) error { return p.runFetch(c.Context(), x) },
	}
	f := c.Flags()
	x.link.Register(f)
	f.StringVar(&x.tables, "tables", "", "`DIR` that collect writes")
	f.StringVar(&x.choice.Site, "site", "", "only findings of this site, `NAME`")
	f.StringVar(&x.choice.Sensor, "sensor", "", "only findings of this sensor, `NAME`")
	f.StringVar(&x.choice.Rule, "rule", "", "only findings of this `RULE`")
	f.StringVar(&x.choice.UID, "uid", "", "only findings of this flow, `UID`")
	f.IntVar(&x.most, "most", 1, "`N` findings at most, the newest first")
	f.BoolVar(&x.list, "list", false, "list the findings, and fetch nothing")
	f.BoolVar(&x.json, "json", false, "print JSON Lines")
	f.StringVarP(&x.output, "output", "o", ".", "`DIR` for the captures")
	f.DurationVar(&x.fetch.Before, "before", 0, "`TIME` before the finding (default: the whole flow)")
	f.DurationVar(&x.fetch.After, "after", fetch.DefaultAfter, "`TIME` after the finding")
	f.BoolVar(&x.fetch.Plain, "plain", false, "ask for packets as captured")
	f.BoolVar(&x.open, "open", false, "open the capture as `ackscope tui` does")
	return c
}

func (p *program) runFetch(ctx context.Context, x *fetchFlags) error {
	if x.tables == "" {
		return errors.New("expected --tables DIR, the folder that collect writes")
	}
	const all = 1 << 20 // of a list
	most := x.most
	if x.list {
		most = all
	}
	list, err := fetch.Find(x.tables, x.choice, most)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("expected a finding in the tables that fits, found none")
	}
	if x.list {
		for _, f := range list {
			if err := p.print(x.json, f.String(), f); err != nil {
				return err
			}
		}
		return nil
	}
	hub, err := link.Connect(x.link)
	if err != nil {
		return err
	}
	defer hub.Close()
	var failed error
	for _, f := range list {
		got, err := p.fetchOne(ctx, hub, f, x)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%v: %w", f, err))
			continue
		}
		if x.open {
			if code := openTUI(got.Path); code != exitFine {
				return fmt.Errorf("%s: the terminal UI ended with %d", got.Path, code)
			}
		}
	}
	return failed
}

func (p *program) fetchOne(ctx context.Context, hub *nats.Conn, f *fetch.Finding, x *fetchFlags) (*fetch.Fetched,
	error,
) {
	got, err := fetch.Fetch(ctx, hub, f, filepath.Join(x.output, fileName(f)), x.fetch)
	if err != nil {
		return nil, err
	}
	if err := got.Shows(analyze.Options{Registry: protocols.Default()}); err != nil {
		return nil, err
	}
	how, again := "anonymised", "it does not show the finding again"
	if got.Answer.Plain {
		how = "as captured"
	}
	if got.Again {
		again = "it shows the finding again"
	}
	text := fmt.Sprintf("%s: %d packets, %d bytes, %s, digest right; %s", got.Path, got.Answer.Frames,
		got.Answer.Bytes, how, again)
	if len(got.Answer.Missing) > 0 {
		text += "; missing: " + strings.Join(got.Answer.Missing, ", ")
	}
	return got, p.print(x.json, text, got)
}

// fileName returns the name of a finding's capture. Its parts are checked names, digits and words of a rule.
func fileName(f *fetch.Finding) string {
	clean := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}
	const digits = 12 // of a uid: enough to tell the flows of one sensor apart
	return fmt.Sprintf("%s-%s-%s-%s-%s.pcapng", f.At.Site, f.At.Sensor, strings.Map(clean, f.Rule), strings.Map(clean,
		strings.ToLower(f.Side)),
		strings.Map(clean, f.UID[:min(digits, len(f.UID))]))
}

// print prints a line: the text, or the object in JSON.
func (p *program) print(asJSON bool, text string, object any) error {
	if !asJSON {
		_, err := fmt.Fprintln(p.out, strings.TrimRight(text, "\n"))
		return err
	}
	line, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "%s\n", line)
	return err
}

// openTUI opens a capture in the terminal UI of core.
func openTUI(path string) int {
	r := protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol}
	return cli.Run(r, []string{"tui", path}, app.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

package riptide

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/dissect/riptide"
)

func guessCommand(a *app.App) *cobra.Command {
	var most int
	c := &cobra.Command{
		Use:   "guess [FILE...]",
		Short: "What Riptide's messages may hold, where no schema says it: a start for one",
		Long: `guess proposes, for each message id, sequences of texts, counted arrays and stretches of
fixed width that consume every payload of the capture to its last bit, the likeliest first.

Payloads carry no types, so these are guesses: bits:32[] is a counted array of 32-bit numbers
of any kind, bits:34 a stretch of 34 bits of any meaning. If all payloads of an id
have the same length, guess prints only that length (up to 7 bits of it are padding, where
values are packed). The words are those of schemas (ackscope messages --schema).`,
		Example: `  ackscope guess match.pcapng
  ackscope guess --json --most 5 match.pcapng`,
		RunE: func(_ *cobra.Command, args []string) error {
			if most < 1 {
				return fmt.Errorf("--most %d: expected at least 1", most)
			}
			return guess(a, args, most)
		},
	}
	reader.JoinFlag(a, c)
	c.Flags().IntVar(&most, "most", 1, "tell the `N` likeliest of each message")
	return c
}

func guess(a *app.App, args []string, most int) error {
	var g riptide.Guesser
	// Payloads of one id are guessed together, from all files.
	unread := reader.Each(a, args, func(from *reader.Recording) error {
		_, in, err := reader.Study(a, from, func(r *analyze.Record) {
			if f := r.Flow; f != nil && f.Protocol != nil && f.Protocol.Name == riptide.Protocol.Name &&
				len(r.Datagram.Bytes) > 0 {
				g.Observe(f.Config(), &r.Datagram)
			}
		})
		if in != nil {
			defer in.Close()
		}
		return a.Ended(err)
	})
	if unread != nil && reader.Unread(unread) == nil {
		return unread
	}
	var o app.Object
	for _, guess := range g.Guesses() {
		typings := guess.Typings[:min(most, len(guess.Typings))]
		if a.Flags.JSON {
			o.Begin()
			guessObject(&o, &guess, typings)
			if err := o.End(a.Writer()); err != nil {
				return err
			}
			continue
		}
		if _, err := a.Writer().WriteString(guessText(&guess, typings)); err != nil {
			return err
		}
	}
	return unread
}

func guessObject(o *app.Object, g *riptide.Guess, typings []riptide.Typing) {
	o.Str("protocol", riptide.Protocol.Name)
	o.Str("dialect", g.Dialect)
	if g.Notify {
		o.Null("message_id")
		o.Str("mode", "notify")
	} else {
		o.Uint("message_id", uint64(g.MessageID))
	}
	o.Int("payloads", int64(g.Payloads))
	if g.FixedBits >= 0 {
		o.Int("fixed_bits", int64(g.FixedBits))
	}
	o.Key("guesses")
	o.Buf = append(o.Buf, '[')
	for i := range typings {
		if i > 0 {
			o.Buf = append(o.Buf, ',')
		}
		o.Buf = append(o.Buf, '{')
		o.Str("types", typings[i].String())
		o.Float("score", typings[i].Score, 1)
		o.Buf = append(o.Buf, '}')
	}
	o.Buf = append(o.Buf, ']')
}

func guessText(g *riptide.Guess, typings []riptide.Typing) string {
	var b strings.Builder
	name := fmt.Sprintf("id %d", g.MessageID)
	if g.Notify {
		name = "notify"
	}
	fmt.Fprintf(&b, "%-9s  %-9s  %5d payloads  ", g.Dialect, name, g.Payloads)
	switch {
	case g.FixedBits >= 0:
		fmt.Fprintf(&b, "always %d bits\n", g.FixedBits)
	case len(typings) == 0:
		b.WriteString("of several lengths: no guess explains all of them\n")
	}
	for i := range typings {
		if i > 0 {
			fmt.Fprintf(&b, "%-39s", "")
		}
		fmt.Fprintf(&b, "guess: %s\n", typings[i].String())
	}
	return b.String()
}

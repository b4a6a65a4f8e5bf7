//go:build !js

package files

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/rewrite/anonymise"
	"github.com/ackscope/ackscope/show"
)

// AnonymiseCommand builds `ackscope anonymise`.
func AnonymiseCommand(a *app.App) *cobra.Command {
	var secret secretFlags
	var o anonymise.Options
	var write string
	c := &cobra.Command{
		Use:     "anonymise IN OUT.pcapng",
		Aliases: []string{"anonymize"},
		Short:   "A capture to share: other addresses and contents, the same traffic",
		Long: `anonymise writes a capture in which addresses and what the application said are
replaced: by the protocol's own decoding, field by field, at the same lengths. Times,
sequences, acks, flags and message types stay, so that an analysis of the result finds
what one of the original does. The same bytes become the same bytes. Checksums, Gaffer's
CRC and netcode's authentication are right again.

What is encrypted is opened with --keys, changed, and encrypted with the same keys;
without its keys it is refused, before anything is written. Where a schema reads messages,
their values are replaced one by one, and they stay readable; elsewhere a message's body
is replaced as bytes.
Frames that are neither UDP nor TCP keep their time and their length and nothing else.
A datagram that the flow's protocol did not send is replaced as a whole.

The replacements are made from a secret: at random, unless --secret-file, --secret-prompt
or the environment variable ACKSCOPE_SECRET gives one. The same secret makes the same
replacements in every run and on every machine. It is stretched with Argon2id.

What was replaced by what is printed: keep it as you keep the original.`,
		Example: `  ackscope anonymise match.pcapng share.pcapng
  ackscope anonymise --secret-file secret.txt match.pcapng share.pcapng
  ACKSCOPE_SECRET=... ackscope anonymise match.pcapng share.pcapng
  ackscope anonymise --ports --json match.pcapng share.pcapng > names.json
  ackscope anonymise --keys keys.yaml match.pcapng share.pcapng`,
		RunE: func(c *cobra.Command, args []string) error {
			from, to, err := a.InOut(c, args, write)
			if err != nil {
				return err
			}
			if o.Key, err = secret.key(a); err != nil {
				return err
			}
			return Anonymise(a, from, to, o)
		},
	}
	a.Writes(c)
	c.Flags().StringVarP(&write, "write", "w", "", "write to `OUT`, instead of the second argument")
	c.Flags().BoolVar(&o.Ports, "ports", false, "replace ports too")
	c.Flags().BoolVar(&o.Blank, "blank-encrypted", false, "replace what no key opens as bytes, rather than refusing it")
	secret.add(c)
	return c
}

// Anonymise copies the capture from to the file to, without addresses, contents
// and names.
func Anonymise(a *app.App, from, to string, o anonymise.Options) error {
	analysis, err := a.Options()
	if err != nil {
		return err
	}
	o.Room = a.Share(4)
	source, err := reader.Open(a, reader.File(from), reader.Options{Keep: capture.KeepPipes, Passes: 3})
	if err != nil {
		return err
	}
	defer source.Close()
	a.Reading([]string{from})
	out, err := reader.NewSave(a, "", to, reader.Origin{Of: nameless(source.In)})
	if err != nil {
		return err
	}
	report, err := anonymise.Run(source, analysis, o, func(f *capture.Frame) error { return out.Write(f) })
	source.Done()
	if report == nil {
		return errors.Join(err, out.Abort())
	}
	if closeErr := out.CloseAfter(err, nil); closeErr != nil {
		return errors.Join(a.Ended(err), closeErr)
	}
	if err := a.Ended(err); err != nil {
		return err
	}
	if to == "-" {
		return nil
	}
	return printAnonymised(a, report)
}

// nameless describes the interfaces of a capture by their numbers only.
func nameless(in *capture.Input) func(file, index int) capture.Interface {
	return func(_, index int) capture.Interface {
		x := capture.Interface{Name: fmt.Sprintf("if%d", index)}
		if list := in.Interfaces(0); index < len(list) {
			const longest = 262144 // libpcap's MAXIMUM_SNAPLEN: a larger number means no limit
			x.SnapLength, x.Resolution, x.Statistics = min(list[index].SnapLength, longest), list[index].Resolution,
				list[index].Statistics.Bounded()
		}
		return x
	}
}

func printAnonymised(a *app.App, r *anonymise.Report) error {
	w := a.Writer()
	if a.Flags.JSON {
		var o app.Object
		for _, list := range []struct {
			kind string
			of   []anonymise.Replacement
		}{{"address", r.Addresses}, {"port", r.Ports}} {
			for _, x := range list.of {
				o.Begin()
				o.Str("kind", list.kind)
				o.Str("from", x.From)
				o.Str("to", x.To)
				if err := o.End(w); err != nil {
					return err
				}
			}
		}
		for _, x := range r.Contents {
			o.Begin()
			o.Str("kind", "content")
			o.Str("field", x.Field)
			o.Uint("count", x.Count)
			o.Uint("bits", x.Bits)
			if err := o.End(w); err != nil {
				return err
			}
		}
		o.Begin()
		o.Str("kind", "frames")
		o.Uint("frames", r.Frames)
		o.Uint("blanked", r.Blanked)
		return o.End(w)
	}
	fmt.Fprintf(w, "%s written", show.Plural(r.Frames, "frame"))
	if r.Blanked > 0 {
		fmt.Fprintf(w, "; of %d, neither UDP nor TCP, nothing is left but their time and length", r.Blanked)
	}
	fmt.Fprintln(w)
	for _, x := range r.Addresses {
		fmt.Fprintf(w, "  %-39s  →  %s\n", x.From, x.To)
	}
	for _, x := range r.Ports {
		fmt.Fprintf(w, "  port %-34s  →  %s\n", x.From, x.To)
	}
	for _, x := range r.Contents {
		fmt.Fprintf(w, "  %-39s  %s, %s\n", x.Field, show.Plural(x.Count, "time"), show.Plural((x.Bits+7)/8, "byte"))
	}
	return nil
}

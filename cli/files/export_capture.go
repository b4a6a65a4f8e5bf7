//go:build !js

package files

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/printable"
)

func exportPcapngCommand(a *app.App) *cobra.Command {
	f := &exportFlags{}
	c := &cobra.Command{
		Use:   "pcapng [FILE...]",
		Short: "The capture again, with findings and fates as comments on its packets",
		Long: `export pcapng writes the packets with their times, interfaces and own comments, and adds a
comment for each fact about a packet: in which frame it was acked and after what time, that it
was lost, received, refused or sent again, and what is wrong with it. Wireshark shows them
(frame.comment) and filters by them. Facts stand at the packet that they are about.`,
		Example: `  ackscope export pcapng -o told.pcapng match.pcapng
  tshark -r told.pcapng -Y 'frame.comment contains "can no longer be acked"'
  ackscope export pcapng --findings-only -o told.pcapng match.pcapng`,
		RunE: func(_ *cobra.Command, args []string) error { return exportPcapng(a, f, args) },
	}
	f.register(c, "write to `FILE`, - for standard output")
	reader.JoinFlag(a, c)
	c.Flags().BoolVar(&f.findings, "findings-only", false, "comments for findings only")
	return c
}

func exportPcapng(a *app.App, f *exportFlags, args []string) error {
	if f.out == "" {
		return errors.New("expected -o: a file, or - for standard output")
	}
	from, err := reader.One(a, args, "export pcapng")
	if err != nil {
		return err
	}
	notes := export.NewNotes()
	defer func() { _ = notes.Close() }() // it holds temporary files only
	a.Memory.Gone = func(f *analyze.Flow, _ analyze.Reason) { notes.Forget(f) }
	_, in, err := reader.Study(a, from, notes.Record)
	if in == nil {
		return err
	}
	defer in.Close()
	if err := a.Ended(err); err != nil {
		return err
	}
	if err := notes.Sort(); err != nil {
		return err
	}
	if err := in.In.Rewind(); err != nil {
		return err
	}
	return a.SaveFile("-o", f.out, outfile.Payload, from.Paths, func(w io.Writer) error {
		s, err := reader.NewSaveInto(a, w, reader.OriginOf(in.In))
		if err != nil {
			return err
		}
		var list []export.Note
		var comments []string
		var frame capture.Frame
		for {
			if err := in.In.Next(&frame); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				if a.Tolerated(err) {
					break // the error is reported already
				}
				return err
			}
			var err error
			if list, err = notes.At(frame.Ref, list); err != nil {
				return err
			}
			comments = comments[:0]
			for i := range list {
				if x := &list[i]; x.Kind == export.NoteFinding || x.Kind != export.NoteSent && !f.findings {
					comments = append(comments, printable.String(string(x.Append([]byte("ackscope: ")))))
				}
			}
			if err := s.Write(&frame, comments[:min(len(comments), maxComments)]...); err != nil {
				return err
			}
		}
		return s.Close(nil)
	})
}

// maxComments limits the comments that are added to one packet.
const maxComments = 64

func exportWiresharkCommand(a *app.App) *cobra.Command {
	f := &exportFlags{}
	c := &cobra.Command{
		Use:   "wireshark FILE",
		Short: "A Lua script that shows findings, fates and fields in Wireshark and tshark, as columns too",
		Long: `export wireshark writes a Lua post-dissector for this capture. Wireshark then has, for each
packet, the fields of the three protocols, by the names that filters have here, and what was
inferred: ackscope.fate, acked_in, rtt, resend_of, resent_in, finding, severity, and more.
The script looks frames up by their numbers: it serves the capture that it was made of.

Put it into Wireshark's folder of personal Lua plugins, or name it with -X lua_script:FILE.
As any Lua script of Wireshark, it is not loaded where Lua is switched off.`,
		Example: `  ackscope export wireshark -o match.lua match.pcapng
  wireshark -X lua_script:match.lua match.pcapng
  tshark -X lua_script:match.lua -r match.pcapng -Y 'ackscope.fate == "lost"' -T fields -e frame.number -e gaffer.sequence -e ackscope.resent_in`,
		RunE: func(_ *cobra.Command, args []string) error { return exportWireshark(a, f, args) },
	}
	f.register(c, "write to `FILE`, - for standard output")
	return c
}

func exportWireshark(a *app.App, f *exportFlags, args []string) error {
	if f.out == "" {
		return errors.New("expected -o: a file such as match.lua, or - for standard output")
	}
	captures := reader.Paths(a, args)
	if n := len(captures); n > 1 {
		return fmt.Errorf("expected one capture, found %d: frames are looked up by their numbers in it", n)
	}
	return a.SaveFile("-o", f.out, outfile.Payload, captures, func(w io.Writer) error {
		s := export.NewScript(w, a.Registry)
		l := &reader.Listing{App: a, Live: &reader.LiveFlags{}, Whole: true}
		var err error
		if l.Filter, err = reader.Compile(a, ""); err != nil {
			return err
		}
		l.Needs = filter.NeedFlow | filter.NeedFields | filter.NeedEvents | filter.NeedFindings
		l.Show = func(_ *filter.Record, x *analyze.Record) error { return s.Packet(&l.Reading, x) }
		if err := l.Run(args); err != nil {
			return errors.Join(err, s.Abandon())
		}
		return s.Close(l.Reader.Frames)
	})
}

func exportQlogCommand(a *app.App) *cobra.Command {
	f := &exportFlags{}
	c := &cobra.Command{
		Use:   "qlog [FILE...]",
		Short: "qlog, as the IETF's draft has it or as qvis reads it: two traces a flow, one for each side",
		Long: `export qlog writes what each side of a flow knew as a trace of its own, in the order of time.
Packet numbers are unwrapped sequence numbers.

  --dialect ietf   the header of draft-ietf-quic-qlog-main-schema; the events are ackscope's own
                   ("ackscope-gaffer:packet_acked"), with the frame and the certainty of each
  --dialect qvis   version 0.3 with the events that qvis draws: the names are QUIC's, the
                   packets are not`,
		Example: `  ackscope export qlog -o match.qlog match.pcapng
  ackscope export qlog --dialect qvis --flow 2 -o flow2.qlog match.pcapng`,
		RunE: func(_ *cobra.Command, args []string) error { return exportQlog(a, f, args) },
	}
	f.register(c, "write to `FILE`, - for standard output")
	reader.JoinFlag(a, c)
	c.Flags().StringVar(&f.dialect, "dialect", "ietf", "`ietf|qvis`")
	c.Flags().StringSliceVar(&f.flows, "flow", nil,
		"these flows only, by `NUMBER`, or FILE:NUMBER where several files are read")
	_ = c.RegisterFlagCompletionFunc("dialect", app.CompleteWords("ietf", "qvis"))
	return c
}

func exportQlog(a *app.App, f *exportFlags, args []string) error {
	if f.out == "" {
		return errors.New("expected -o: a file such as match.qlog, or - for standard output")
	}
	dialect, ok := map[string]export.QlogDialect{"ietf": export.IETF, "qvis": export.QVIS}[f.dialect]
	if !ok {
		return fmt.Errorf("--dialect %q: expected ietf or qvis", f.dialect)
	}
	list, err := reader.Recordings(a, args)
	if err != nil {
		return err
	}
	flows, err := flowsOf(list, f.flows)
	if err != nil {
		return err
	}
	captures := reader.Paths(a, args)
	var unread error // of some of several captures: the traces of the others are kept
	err = a.SaveFile("-o", f.out, outfile.Text, captures, func(w io.Writer) error {
		title := captures[0]
		if len(list) > 1 {
			title = namesOfFiles(captures)
		}
		q := export.NewQlog(w, dialect, title)
		err := reader.EachOf(a, list, func(r *reader.Recording) error {
			if len(f.flows) > 0 && len(flows[r]) == 0 {
				return nil
			}
			file := ""
			if r.Among() {
				file = r.Name()
			}
			q.Begin(file, flows[r])
			return traces(a, q, r)
		})
		if err != nil && reader.Unread(err) == nil {
			return err
		}
		unread = err
		return q.Close()
	})
	return errors.Join(err, unread)
}

// traces writes the flows of a recording as qlog.
func traces(a *app.App, q *export.Qlog, r *reader.Recording) error {
	s, in, err := reader.Study(a, r, q.Record)
	if in != nil {
		defer in.Close()
	}
	if s == nil {
		return err
	}
	if err := a.Ended(err); err != nil {
		return errors.Join(err, q.Abandon())
	}
	return q.End(s.Flows())
}

// flowsOf returns the numbers of the flows that --flow names, by recording.
func flowsOf(list []*reader.Recording, texts []string) (map[*reader.Recording][]int, error) {
	flows := map[*reader.Recording][]int{}
	for _, text := range texts {
		name, err := reader.ParseFlow(text)
		if err != nil {
			return nil, err
		}
		if name.Number == 0 {
			return nil, fmt.Errorf("--flow %q: expected a number from 1, or FILE:NUMBER", text)
		}
		r, err := reader.OfFlow(list, name)
		if err != nil {
			return nil, err
		}
		flows[r] = append(flows[r], name.Number)
	}
	return flows, nil
}

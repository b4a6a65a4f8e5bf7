package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/printable"
)

func (a *app) exportPcapngCommand() *cobra.Command {
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
		RunE: func(_ *cobra.Command, args []string) error { return a.exportPcapng(f, args) },
	}
	f.register(c, "write to `FILE`, - for standard output")
	a.joinFlag(c)
	c.Flags().BoolVar(&f.findings, "findings-only", false, "comments for findings only")
	return c
}

func (a *app) exportPcapng(f *exportFlags, args []string) error {
	if f.out == "" {
		return errors.New("expected -o: a file, or - for standard output")
	}
	from, err := a.one(args, "export pcapng")
	if err != nil {
		return err
	}
	notes := export.NewNotes()
	defer func() { _ = notes.Close() }() // of temporary files only
	a.memory.gone = func(f *analyze.Flow, _ analyze.Reason) { notes.Forget(f) }
	_, in, err := a.study(from, notes.Record)
	if in == nil {
		return err
	}
	defer in.Close()
	if err := a.ended(err); err != nil {
		return err
	}
	if err := notes.Sort(); err != nil {
		return err
	}
	if err := in.Rewind(); err != nil {
		return err
	}
	return a.saveFile("-o", f.out, outfile.Payload, a.paths(args), func(w io.Writer) error {
		s := &save{app: a, from: originOf(in), format: formatNG, out: w}
		if err := s.begin(f.out); err != nil {
			return err
		}
		var list []export.Note
		var comments []string
		var frame capture.Frame
		for {
			if err := in.Next(&frame); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				if a.tolerated(err) {
					break // told of already
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
			if err := s.write(&frame, comments[:min(len(comments), maxComments)]...); err != nil {
				return err
			}
		}
		return s.close(nil)
	})
}

// maxComments bounds what is added to one packet.
const maxComments = 64

func (a *app) exportWiresharkCommand() *cobra.Command {
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
		RunE: func(_ *cobra.Command, args []string) error { return a.exportWireshark(f, args) },
	}
	f.register(c, "write to `FILE`, - for standard output")
	return c
}

func (a *app) exportWireshark(f *exportFlags, args []string) error {
	if f.out == "" {
		return errors.New("expected -o: a file such as match.lua, or - for standard output")
	}
	if n := len(a.paths(args)); n != 1 {
		return fmt.Errorf("expected one capture, found %d: frames are looked up by their numbers in it", n)
	}
	return a.saveFile("-o", f.out, outfile.Payload, a.paths(args), func(w io.Writer) error {
		s := export.NewScript(w, a.registry)
		l := &listing{app: a, live: &liveFlags{}, whole: true}
		var err error
		if l.filter, err = a.compile(""); err != nil {
			return err
		}
		l.needs = filter.NeedFlow | filter.NeedFields | filter.NeedEvents | filter.NeedFindings
		l.show = func(_ *filter.Record, x *analyze.Record) error { return s.Packet(&l.reading, x) }
		if err := l.run(args); err != nil {
			return errors.Join(err, s.Abandon())
		}
		return s.Close(l.feed.frames)
	})
}

func (a *app) exportQlogCommand() *cobra.Command {
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
		RunE: func(_ *cobra.Command, args []string) error { return a.exportQlog(f, args) },
	}
	f.register(c, "write to `FILE`, - for standard output")
	a.joinFlag(c)
	c.Flags().StringVar(&f.dialect, "dialect", "ietf", "`ietf|qvis`")
	c.Flags().StringSliceVar(&f.flows, "flow", nil, "these flows only, by `NUMBER`, or FILE:NUMBER where several files are read")
	_ = c.RegisterFlagCompletionFunc("dialect", completeWords("ietf", "qvis"))
	return c
}

func (a *app) exportQlog(f *exportFlags, args []string) error {
	if f.out == "" {
		return errors.New("expected -o: a file such as match.qlog, or - for standard output")
	}
	dialect, ok := map[string]export.QlogDialect{"ietf": export.IETF, "qvis": export.QVIS}[f.dialect]
	if !ok {
		return fmt.Errorf("--dialect %q: expected ietf or qvis", f.dialect)
	}
	list, err := a.recordings(args)
	if err != nil {
		return err
	}
	flows, err := flowsOf(list, f.flows)
	if err != nil {
		return err
	}
	return a.saveFile("-o", f.out, outfile.Text, a.paths(args), func(w io.Writer) error {
		title := a.paths(args)[0]
		if len(list) > 1 {
			title = namesOfFiles(a.paths(args))
		}
		q := export.NewQlog(w, dialect, title)
		for _, r := range list {
			if len(f.flows) > 0 && len(flows[r]) == 0 {
				continue
			}
			file := ""
			if r.among() {
				file = r.name()
			}
			q.Begin(file, flows[r])
			if err := a.traces(q, r); err != nil {
				return err
			}
		}
		return q.Close()
	})
}

// traces writes the flows of a recording as qlog.
func (a *app) traces(q *export.Qlog, r *recording) error {
	s, in, err := a.study(r, q.Record)
	if in != nil {
		defer in.Close()
	}
	if s == nil {
		return err
	}
	if err := a.ended(err); err != nil {
		return errors.Join(err, q.Abandon())
	}
	return q.End(s.Flows())
}

// flowsOf gives the flows that --flow names, by recording.
func flowsOf(list []*recording, texts []string) (map[*recording][]int, error) {
	flows := map[*recording][]int{}
	for _, text := range texts {
		name, err := parseFlow(text)
		if err != nil {
			return nil, err
		}
		if name.number == 0 {
			return nil, fmt.Errorf("--flow %q: expected a number from 1, or FILE:NUMBER", text)
		}
		r, err := ofFlow(list, name)
		if err != nil {
			return nil, err
		}
		flows[r] = append(flows[r], name.number)
	}
	return flows, nil
}

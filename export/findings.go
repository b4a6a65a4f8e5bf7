package export

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// FindingRow is a row of Findings.
type FindingRow struct {
	*analyze.Finding
	File        string // empty if only one file is read
	Provisional bool   // its flow has not ended
	Log, LogWhy string // what the game's own log says of the pause; empty if nothing
}

type findingColumn = column[FindingRow]

// Findings has a row for each finding.
var Findings = newTable("findings", "What is wrong, how surely, and in which frames: a row for each rule, side and "+
	"certainty of a flow, the gravest first.",
	findingColumn{
		Column{Name: "frame", Type: Uint, Doc: "The first frame that shows it."},
		func(r *FindingRow, c *Cell) { c.uint(r.Refs[0].Frame()) },
	},
	findingColumn{
		Column{Name: "time", Type: Time, Doc: "When it occurred first."},
		func(r *FindingRow, c *Cell) { c.int(int64(r.First)) },
	},
	findingColumn{
		Column{Name: "flow", Type: Uint, Doc: "Number of the flow, from 1."},
		func(r *FindingRow, c *Cell) { c.uint(uint64(r.Flow.ID)) },
	},
	findingColumn{Column{
		Name: "protocol", Type: Text, Absent: Null,
		Doc: "Protocol of the flow; null where none explains it.",
	}, func(r *FindingRow, c *Cell) { protocolCell(c, r.Flow) }},
	findingColumn{
		Column{Name: "dialect", Type: Text, Absent: Null, Doc: "Dialect of the protocol."},
		func(r *FindingRow, c *Cell) { dialectCell(c, r.Flow) },
	},
	findingColumn{
		Column{Name: "side", Type: Text, Words: sides, Doc: "Whose doing it is."},
		func(r *FindingRow, c *Cell) { c.own(r.Side.String()) },
	},
	findingColumn{
		Column{Name: "addr", Type: Text, Doc: "Address and port of that side."},
		func(r *FindingRow, c *Cell) { c.addr(r.Flow.Addr(r.Side)) },
	},
	findingColumn{
		Column{Name: "rule", Type: Text, Doc: "Name of the rule: see findings.md, or `ackscope explain`."},
		func(r *FindingRow, c *Cell) { c.own(r.Rule.ID) },
	},
	findingColumn{
		Column{Name: "severity", Type: Text, Words: severities, Doc: "How grave it is."},
		func(r *FindingRow, c *Cell) { c.own(r.Rule.Severity.String()) },
	},
	findingColumn{
		Column{Name: "certainty", Type: Text, Words: certainties, Doc: "How surely the capture shows it."},
		func(r *FindingRow, c *Cell) { c.own(r.Certainty.String()) },
	},
	findingColumn{
		Column{Name: "message", Type: Text, Doc: "The finding in words."},
		func(r *FindingRow, c *Cell) { c.text(r.Message()) },
	},
	findingColumn{
		Column{Name: "count", Type: Uint, Doc: "How often it occurred."},
		func(r *FindingRow, c *Cell) { c.uint(r.Count) },
	},
	findingColumn{
		Column{Name: "frames", Type: Uints, Doc: "The first frames that show it, 16 at most."},
		func(r *FindingRow, c *Cell) { framesCell(c, r.Refs) },
	},
	findingColumn{
		Column{
			Name: "about_frames", Type: Uints,
			Doc: "For each of those the frame that it refers to; 0 for none.",
		},
		func(r *FindingRow, c *Cell) { framesCell(c, r.Abouts) },
	},
	findingColumn{
		Column{Name: "figures", Type: Floats, Doc: "Figures of the worst occurrence, in the rule's order."},
		func(r *FindingRow, c *Cell) {
			c.Set, c.Reals = true, append(c.Reals, r.Figures[:]...)
		},
	},
	findingColumn{
		Column{Name: "last_time", Type: Time, Doc: "When it occurred last."},
		func(r *FindingRow, c *Cell) { c.int(int64(r.Last)) },
	},
	findingColumn{
		Column{
			Name: "host", Type: Text, Words: analyze.HostCauses(), Absent: Omitted,
			Doc: "Where in the capturing host datagrams died or waited; omitted without samples of it: see host.md.",
		},
		func(r *FindingRow, c *Cell) {
			if v, ok := r.Host(); ok {
				c.own(v.Cause.String())
			}
		},
	},
	findingColumn{
		Column{Name: "host_certainty", Type: Text, Words: certainties, Absent: Omitted, Doc: "How surely that is so."},
		func(r *FindingRow, c *Cell) {
			if v, ok := r.Host(); ok {
				c.own(v.Certainty.String())
			}
		},
	},
	findingColumn{
		Column{Name: "host_reason", Type: Text, Absent: Omitted, Doc: "The same in words; or why it is unknown."},
		func(r *FindingRow, c *Cell) {
			if v, ok := r.Host(); ok {
				c.text(v.Text)
			}
		},
	},
	findingColumn{
		Column{
			Name: "provisional", Type: Bool, Absent: Omitted,
			Doc: "True where the flow goes on: what a live capture prints on the way.",
		},
		func(r *FindingRow, c *Cell) { provisionalCell(c, r.Provisional) },
	},
	findingColumn{
		Column{Name: "log", Type: Text, Absent: Omitted, Words: LogWords, Doc: "What the game's own log shows of the pause."},
		func(r *FindingRow, c *Cell) { c.word(r.LogWhy) },
	},
	findingColumn{
		Column{Name: "log_text", Type: Text, Absent: Omitted, Doc: "The same in words."},
		func(r *FindingRow, c *Cell) { c.word(r.Log) },
	},
	findingColumn{
		Column{Name: "file", Type: Text, Absent: Omitted, Doc: "Name of the file, where several are read."},
		func(r *FindingRow, c *Cell) { c.word(r.File) },
	},
)

// LogWords are the words of what a game's log shows of a pause, as gamelog.Why has them.
var LogWords = []string{"outside", "uncertain", "frame-took", "still", "sent-on", "ran-on"}

func framesCell(c *Cell, refs []machine.Ref) {
	c.Set = true
	for _, r := range refs {
		c.Uints = append(c.Uints, r.Frame())
	}
}

func protocolCell(c *Cell, f *analyze.Flow) {
	if f.Protocol != nil {
		c.own(f.Protocol.Name)
	}
}

func dialectCell(c *Cell, f *analyze.Flow) {
	if f.Protocol != nil {
		c.text(f.Config().Dialect)
	}
}

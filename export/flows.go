package export

import (
	"strconv"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// FlowRow is a row of Flows.
type FlowRow struct {
	*analyze.Flow
	File        string // empty if only one file is read
	Ended       string // why a limit removed the flow; empty if none did
	Provisional bool   // it has not ended
}

type flowColumn = column[FlowRow]

// Flows has a row for each conversation.
var Flows = newTable("flows", "A row for each conversation of two endpoints, with what each side knew at its end, by "+
	"order of first packets.", flowColumns()...)

func flowColumns() []flowColumn {
	list := []flowColumn{
		{
			Column{Name: "frame", Type: Uint, Doc: "Its first frame."},
			func(r *FlowRow, c *Cell) { c.uint(r.FirstRef.Frame()) },
		},
		{
			Column{Name: "time", Type: Time, Doc: "When that was captured."},
			func(r *FlowRow, c *Cell) { c.int(int64(r.First)) },
		},
		{
			Column{Name: "flow", Type: Uint, Doc: "Number of the flow, from 1."},
			func(r *FlowRow, c *Cell) { c.uint(uint64(r.ID)) },
		},
		{
			Column{Name: "protocol", Type: Text, Absent: Null, Doc: "Its protocol; null where none explains it."},
			func(r *FlowRow, c *Cell) { protocolCell(c, r.Flow) },
		},
		{
			Column{Name: "dialect", Type: Text, Absent: Null, Doc: "Dialect of the protocol."},
			func(r *FlowRow, c *Cell) { dialectCell(c, r.Flow) },
		},
		{
			Column{Name: "transport", Type: Text, Words: transports[:2], Doc: "What carries it."},
			func(r *FlowRow, c *Cell) { c.own(transportWord(r.Transport)) },
		},
		{
			Column{
				Name: "a", Type: Text,
				Doc: "Address and port of side a, which spoke first or is the client of the handshake.",
			},
			func(r *FlowRow, c *Cell) { c.addr(r.A) },
		},
		{Column{Name: "b", Type: Text, Doc: "Address and port of side b."}, func(r *FlowRow, c *Cell) { c.addr(r.B) }},
		{
			Column{Name: "session", Type: Uint, Doc: "Which session on this pair of addresses, from 1."},
			func(r *FlowRow, c *Cell) { c.uint(uint64(r.Session)) },
		},
		{
			Column{Name: "packets_a", Type: Uint, Doc: "Datagrams (TCP: segments) that a sent."},
			func(r *FlowRow, c *Cell) { c.uint(r.Packets[machine.A]) },
		},
		{
			Column{Name: "packets_b", Type: Uint, Doc: "Datagrams (TCP: segments) that b sent."},
			func(r *FlowRow, c *Cell) { c.uint(r.Packets[machine.B]) },
		},
		{
			Column{Name: "bytes_a", Type: Uint, Unit: "bytes", Doc: "Their payload on the wire, a's."},
			func(r *FlowRow, c *Cell) { c.uint(r.Bytes[machine.A]) },
		},
		{
			Column{Name: "bytes_b", Type: Uint, Unit: "bytes", Doc: "Their payload on the wire, b's."},
			func(r *FlowRow, c *Cell) { c.uint(r.Bytes[machine.B]) },
		},
		{
			Column{
				Name: "capture_duplicates", Type: Uint,
				Doc: "Datagrams that were captured twice: kept out of all other figures.",
			},
			func(r *FlowRow, c *Cell) { c.uint(r.Duplicates) },
		},
		{
			Column{Name: "last_time", Type: Time, Doc: "When its last packet was captured."},
			func(r *FlowRow, c *Cell) { c.int(int64(r.Last)) },
		},
		{
			Column{Name: "confidence", Type: Float, Digits: 4, Absent: Null, Doc: "How sure the protocol is, 0 to 1."},
			func(r *FlowRow, c *Cell) { c.float(r.Verdict.Confidence, 4) },
		},
		{
			Column{Name: "reason", Type: Text, Doc: "What speaks for the protocol; or why none explains the flow."},
			func(r *FlowRow, c *Cell) { c.text(r.Verdict.Reason) },
		},
		{Column{
			Name: "vantage", Type: Text, Words: vantages, Absent: Omitted,
			Doc: "Where the capture was taken. This and what follows: where a protocol explains the flow.",
		}, func(r *FlowRow, c *Cell) {
			if r.Protocol != nil {
				c.own(r.Facts().Vantage.String())
			}
		}},
		{
			Column{Name: "vantage_reason", Type: Text, Absent: Either, Doc: "What tells where it stood."},
			func(r *FlowRow, c *Cell) {
				if r.Protocol != nil {
					c.word(r.Facts().VantageReason)
					c.null = true
				}
			},
		},
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		list = append(list, sideColumns(side)...)
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		list = append(list, hostColumns(side)...)
	}
	for _, s := range []struct {
		name     string
		severity machine.Severity
	}{{"errors", machine.Error}, {"warnings", machine.Warn}, {"notes", machine.Note}} {
		list = append(list,
			flowColumn{Column{Name: s.name, Type: Uint, Absent: Omitted, Doc: "Findings of severity " + s.severity.String() +
				"."}, func(r *FlowRow, c *Cell) {
				if r.Protocol != nil {
					c.uint(show.Severities(r.Flow)[s.severity])
				}
			}})
	}
	list = append(list, wasColumns()...)
	list = append(list,
		flowColumn{
			Column{
				Name: "ended", Type: Text, Words: endings(), Absent: Omitted,
				Doc: "Why a live capture dropped it before the end: see capture.md.",
			},
			func(r *FlowRow, c *Cell) { c.word(r.Ended) },
		},
		flowColumn{
			Column{
				Name: "provisional", Type: Bool, Absent: Omitted,
				Doc: "True where the flow goes on: what a live capture prints on the way.",
			},
			func(r *FlowRow, c *Cell) { provisionalCell(c, r.Provisional) },
		},
	)
	return append(list,
		flowColumn{
			Column{Name: "file", Type: Text, Absent: Omitted, Doc: "Name of the file, where several are read."},
			func(r *FlowRow, c *Cell) { c.word(r.File) },
		})
}

// sideColumns returns the columns for the figures of one side.
func sideColumns(side machine.Side) []flowColumn {
	x, who, peer := "_"+side.String(), side.String(), side.Other().String()
	of := func(c Column, get func(s *machine.Summary, c *Cell)) flowColumn {
		c.Name, c.Absent = c.Name+x, max(c.Absent, Omitted)
		return flowColumn{c, func(r *FlowRow, cell *Cell) {
			if r.Protocol == nil {
				return
			}
			if s, ok := r.Summary(side); ok {
				get(&s, cell)
			}
		}}
	}
	count := func(name, doc string, get func(s *machine.Summary) uint64) flowColumn {
		return of(Column{Name: name, Type: Uint, Doc: doc}, func(s *machine.Summary, c *Cell) { c.uint(get(s)) })
	}
	share := func(name, doc string, get func(s *machine.Summary) float64) flowColumn {
		return of(Column{Name: name, Type: Float, Absent: Either, Digits: 8, Doc: doc}, func(s *machine.Summary, c *Cell) {
			if v := get(s); v >= 0 {
				c.float(v, 8)
			}
			c.null = true
		})
	}
	rtt := func(name, doc string, get func(s *machine.Summary) time.Duration) flowColumn {
		return of(Column{Name: name, Type: Float, Absent: Either, Digits: 6, Unit: "ms", Doc: doc},
			func(s *machine.Summary, c *Cell) {
				if v := get(s); v >= 0 {
					c.float(machine.Milliseconds(v), 6)
				}
				c.null = true
			})
	}
	figure := func(name, doc string, get func(n *analyze.Network) float64) flowColumn {
		return flowColumn{
			Column{Name: name + x, Type: Float, Absent: Either, Digits: 8, Doc: doc},
			func(r *FlowRow, c *Cell) {
				if n, ok := r.Network(side); ok {
					if v := get(&n); v >= 0 {
						c.float(v, 8)
					}
					c.null = true
				}
			},
		}
	}
	sure := func(name, doc string, get func(s *machine.Summary) machine.Certainty) flowColumn {
		return of(Column{Name: name, Type: Text, Words: certainties, Doc: doc},
			func(s *machine.Summary, c *Cell) { c.own(get(s).String()) })
	}
	return []flowColumn{
		{
			Column{Name: "dialect" + x, Type: Text, Absent: Omitted, Doc: "Dialect as " + who + " speaks it."},
			func(r *FlowRow, c *Cell) { dialectCell(c, r.Flow) },
		},
		{
			Column{
				Name: "version" + x, Type: Text, Absent: Omitted,
				Doc: "Library of " + who + ", and its versions that the packets leave open, as text.",
			},
			func(r *FlowRow, c *Cell) {
				if v, ok := r.Versions(side); ok {
					c.text(v.Text())
				}
			},
		},
		{
			Column{
				Name: "versions" + x, Type: JSON, Absent: Omitted,
				Doc: "Names of the open versions, the oldest first.",
			},
			func(r *FlowRow, c *Cell) {
				if v, ok := r.Versions(side); ok && len(v.Open) > 0 {
					c.bytes(appendNames(c.Bytes[:0], v.Open))
				}
			},
		},
		{
			Column{
				Name: "version_reason" + x, Type: Text, Absent: Omitted,
				Doc: "What in its packets excludes the other versions of the dialect.",
			},
			func(r *FlowRow, c *Cell) {
				if v, ok := r.Versions(side); ok {
					c.word(v.Proof)
				}
			},
		},
		count("acked", "Packets of "+who+" that it learned to have arrived.",
			func(s *machine.Summary) uint64 { return s.Acked }),
		share("never_acked", "Share of its packets that never were acked and can no longer be, 0 to 1.",
			func(s *machine.Summary) float64 { return s.NeverAcked }),
		share("loss", "Its own library's estimate of loss, 0 to 1.", func(s *machine.Summary) float64 { return s.Loss }),
		rtt("rtt_ms", "Its own library's smoothed round-trip time.", func(s *machine.Summary) time.Duration { return s.RTT }),
		sure("rtt_certainty", "How surely that is known.", func(s *machine.Summary) machine.Certainty { return s.RTTKnown }),
		sure("loss_certainty", "How surely its estimate of loss is known.",
			func(s *machine.Summary) machine.Certainty { return s.LossKnown }),
		rtt("wire_rtt_ms", "Mean time from a packet to its ack, as both were captured.",
			func(s *machine.Summary) time.Duration { return s.WireRTT }),
		rtt("rtt_p95_ms", "The 95th percentile of the same time, up to 19 % too high.",
			func(s *machine.Summary) time.Duration { return s.Trips.Quantile(0.95) }),
		rtt("jitter_ms", "Mean difference of one such time and the next.",
			func(s *machine.Summary) time.Duration { return s.Trips.Jitter() }),
		figure("path_loss", "The best single figure of the share of its packets that the network lost, 0 to 1. "+
			"Where the capture does not show which of the two ways lost it, it counts both.",
			func(n *analyze.Network) float64 { return n.Share }),
		share("loss_least", "Share of its packets that the network lost at least, 0 to 1.",
			func(s *machine.Summary) float64 { least, _ := s.Bounds.Share(); return least }),
		share("loss_most", "Share of its packets that the network lost at most, 0 to 1.",
			func(s *machine.Summary) float64 { _, most := s.Bounds.Share(); return most }),
		count("received", "Packets of "+peer+" that "+who+" is known to have accepted.",
			func(s *machine.Summary) uint64 { return s.Received }),
		count("duplicates", "Packets of "+peer+" that "+who+" refused as already received.",
			func(s *machine.Summary) uint64 { return s.Duplicates }),
		count("stale", "Packets of "+peer+" that "+who+" refused as too old.",
			func(s *machine.Summary) uint64 { return s.Stale }),
		count("missing", "Sequence numbers of "+peer+" that never reached this capture.",
			func(s *machine.Summary) uint64 { return s.Missing }),
		count("resends", "Packets in which "+who+" sent the same content again.",
			func(s *machine.Summary) uint64 { return s.Resends }),
	}
}

// appendNames appends the names of releases as a JSON list.
func appendNames(to []byte, list []dissect.Release) []byte {
	for i := range list {
		to = strconv.AppendQuote(append(to, "[,"[min(i, 1)]), list[i].Name) // names are plain ASCII
	}
	return append(to, ']')
}

// endings returns the words for the reasons why a flow was removed.
func endings() (words []string) {
	for _, r := range analyze.Reasons() {
		words = append(words, r.String())
	}
	return words
}

// provisionalCell sets the cell for a row that may change, and leaves it empty
// for a final row.
func provisionalCell(c *Cell, yes bool) {
	if yes {
		c.bool(true)
	}
}

func transportWord(t capture.Transport) string {
	switch t {
	case capture.UDP:
		return transports[0]
	case capture.TCP:
		return transports[1]
	case capture.Fragment:
		return transports[2]
	}
	return ""
}

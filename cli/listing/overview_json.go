package listing

import (
	"strings"

	"github.com/ackscope/ackscope/cause"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/overview"
)

// writeOverview prints the overview of a recording as one object.
func writeOverview(a *app.App, from *reader.Recording, c *overview.Capture, files, flags []string) error {
	var o app.Object
	first, last := c.Session.Span()
	o.Begin()
	o.File(from.File(machine.Ref(0)))
	o.Str("name", c.Name)
	o.Str("sentence", c.Sentence())
	if grade, ok := c.Grade(); ok {
		o.Str("severity", grade.String())
	} else {
		o.Null("severity")
	}
	if c.Problem != nil {
		o.Str("problem", c.Problem.Error())
	}
	o.Uint("packets", c.Session.Packets())
	if c.Session.Packets() > 0 {
		o.Time("first", first)
	} else {
		o.Null("first")
	}
	o.Float("span_ms", float64(last.Sub(first))/1e6, 6)
	o.Uint("dropped", c.Session.Dropped())
	o.Uint("flows", uint64(len(c.Flows)+c.More))
	o.Uint("troubled", uint64(c.Troubled))
	o.Uint("others", uint64(len(c.Others)))
	o.Uint("icmp_errors", c.Session.Quotes().Errors)
	o.Uint("icmp_unknown", c.Session.Quotes().Unknown)
	o.List("worst", len(c.Flows), func(i int) { overviewFlow(&o, c.Flows[i]) })
	if c.Cause.Enough() {
		commonCause(&o, c.Cause)
	}
	if c.Logs != nil {
		o.List("logs", len(c.Logs.Logs), func(i int) { o.Inner(func() { gameLog(&o, c.Logs.Logs[i]) }) })
	}
	next := c.Next(files, flags)
	o.List("next", len(next), func(i int) {
		o.Inner(func() {
			o.Str("why", next[i].Why)
			o.Str("command", next[i].String())
		})
	})
	return o.End(a.Writer())
}

func overviewFlow(o *app.Object, f *overview.Flow) {
	o.Inner(func() {
		o.Uint("flow", uint64(f.ID))
		if was := f.Before(); was > 0 {
			o.Uint("was", uint64(was))
		}
		o.Str("protocol", f.Protocol.Name)
		o.Str("dialect", f.Config().Dialect)
		o.Str("vantage", f.Facts().Vantage.String())
		o.List("sides", len(f.Sides), func(i int) { overviewSide(o, f, &f.Sides[i]) })
		o.List("troubles", len(f.Troubles), func(i int) {
			t := &f.Troubles[i]
			o.Inner(func() {
				o.Str("origin", t.Origin.String())
				o.Str("severity", t.Severity.String())
				o.Str("certainty", t.Certainty.String())
				o.Str("side", t.Side.String())
				if t.Rule != nil {
					o.Str("rule", t.Rule.ID)
				} else {
					o.Null("rule")
				}
				o.Bool("divergence", t.Divergence != nil)
				o.Uint("count", t.Count)
				o.Uint("frame", t.Frame.Frame())
				o.Str("text", t.Text)
				if t.Host != nil {
					o.Str("host", t.Host.Cause.String())
					o.Str("host_certainty", t.Host.Certainty.String())
					o.Str("host_reason", t.Host.Text)
				}
				if t.Log != "" {
					o.Str("log", t.Log)
				}
			})
		})
		o.Uint("notes", uint64(f.Notes))
		if len(f.End.Story) > 0 {
			o.Str("end", strings.Join(f.End.Story, " "))
		}
	})
}

func overviewSide(o *app.Object, f *overview.Flow, s *overview.Side) {
	n, l := &s.Network, &s.Lives
	share := func(key string, v float64) {
		if v < 0 {
			o.Null(key)
			return
		}
		o.Float(key, v, 6)
	}
	o.Inner(func() {
		o.Str("side", s.Side.String())
		o.Addr("addr", f.Addr(s.Side))
		o.Bool("near", s.Near)
		o.Word("role", s.Role)
		o.Word("version", s.Version)
		o.Uint("packets", f.Packets[s.Side])
		least, most := n.Loss.Share()
		share("loss_least", least)
		share("loss_most", most)
		share("loss", n.Share)
		o.Str("loss_certainty", n.Certain.String())
		o.Bool("loss_round", n.Round)
		o.Millis("rtt_ms", n.RTT)
		o.Millis("rtt_p95_ms", n.RTT95)
		o.Millis("jitter_ms", n.Jitter)
		o.Millis("stall_ms", n.Stall)
		o.Uint("messages", l.Count)
		o.Uint("resent", l.Resent)
		o.List("causes", len(s.Causes), func(i int) {
			o.Inner(func() {
				o.Str("cause", s.Causes[i].Word)
				o.Uint("count", s.Causes[i].Count)
			})
		})
		o.Millis("arrival_p50_ms", l.Arrival.Quantile(0.5))
		o.Millis("arrival_p95_ms", l.Arrival.Quantile(0.95))
		o.Uint("waited", l.Waited)
		if l.Waited > 0 {
			o.Millis("waited_max_ms", l.Longest.Wait)
		} else {
			o.Null("waited_max_ms")
		}
		if r := s.Result; r != nil {
			o.Str("behaviour", r.Behaviour)
			o.Str("verdict", r.Word)
		} else {
			o.Null("behaviour")
			o.Null("verdict")
		}
	})
}

// commonCause writes what the troubles of the flows have in common.
func commonCause(o *app.Object, r *cause.Report) {
	o.Key("common_cause")
	o.Inner(func() {
		o.Str("sentence", r.Sentence())
		o.Uint("flows", uint64(r.Flows))
		o.Uint("left_out", uint64(r.More))
		o.List("causes", len(r.Verdicts), func(i int) {
			v := &r.Verdicts[i]
			o.Inner(func() { causeVerdict(o, v) })
		})
	})
}

func causeVerdict(o *app.Object, v *cause.Verdict) {
	o.Str("trouble", v.Trouble.String())
	o.Str("kind", v.Kind.String())
	o.Word("group", v.Group)
	if v.Also != "" {
		o.Str("also", v.Also)
	}
	if v.Flow > 0 {
		o.Uint("flow", uint64(v.Flow))
	}
	o.Str("certainty", v.Certainty.String())
	o.Float("p", v.P, 9)
	o.Bool("from_server", v.Down)
	o.Bool("to_server", v.Up)
	o.Uint("affected", uint64(v.Flows))
	o.Uint("in_group", uint64(v.In))
	o.Uint("of_group", uint64(v.Of))
	if v.Trouble == cause.Loss {
		o.Float("loss_least", v.Least, 6)
		o.Float("loss_most", v.Most, 6)
		o.Float("loss_others", v.Usual, 6)
	} else {
		o.Uint("moments", uint64(v.Moments))
		o.Millis("within_ms", v.Within)
		o.Millis("longest_ms", v.Longest)
		o.Time("first", v.First)
		if v.Frame != 0 {
			o.Uint("frame", v.Frame.Frame())
		}
	}
	o.Str("text", v.Sentence())
}

// gameLog writes where a game's log lies on the clock of the capture, or why it has no place.
func gameLog(o *app.Object, a *gamelog.Aligned) {
	o.Str("name", a.Name)
	o.Bool("aligned", a.OK())
	if a.OK() {
		o.Uint("flow", uint64(a.Flow.ID))
		o.Str("side", a.Side.String())
		o.Addr("addr", a.Addr())
		o.Str("method", a.Method.String())
		o.Str("certainty", a.Certainty.String())
		o.Uint("matched", uint64(a.Matched))
		o.Time("first", a.Start())
		o.Float("offset_s", a.Offset(), 9)
		o.Float("unit_s", a.Unit(), 9)
		o.Float("skew_ppm", a.Skew(), 3)
		o.Float("skew_error_ppm", a.SkewError(), 3)
		o.Millis("error_ms", a.Error())
		o.Bool("way_in_error", a.Far)
		o.Bool("way_unknown", a.Unplaced)
	} else {
		o.Str("reason", a.Reason)
	}
	o.List("compared", len(a.Compared), func(i int) { o.Inner(func() { compared(o, &a.Compared[i]) }) })
	o.Uint("lines", uint64(a.Lines))
	o.Uint("frames", uint64(a.Frames))
	o.Uint("left_out", uint64(a.BadCount))
	o.List("bad", len(a.Bad), func(i int) {
		o.Inner(func() {
			o.Uint("line", uint64(a.Bad[i].Line))
			o.Str("reason", a.Bad[i].Reason)
		})
	})
}

// compared writes a counter of a game's log beside what the capture has of it.
func compared(o *app.Object, c *gamelog.Comparison) {
	o.Str("name", c.Name)
	o.Str("what", c.What)
	o.Uint("values", uint64(c.Values))
	o.Bool("agrees", c.Line == 0)
	if c.Line == 0 {
		return
	}
	o.Uint("line", uint64(c.Line))
	o.Time("time", c.At)
	if c.Frame != 0 {
		o.Uint("frame", c.Frame.Frame())
	}
	o.Float("log", c.Log, 3)
	o.Float("least", c.Least, 3)
	o.Float("most", c.Most, 3)
	o.Str("certainty", c.Certainty.String())
}

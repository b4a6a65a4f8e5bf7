package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/show"
)

// silentAfter is how long after its last report a sensor counts as silent: three reports are missing.
const silentAfter = 35 * time.Second

// Heading returns the first line.
func (s *Snapshot) Heading() string {
	sites := map[string]bool{}
	for i := range s.Sensors {
		sites[s.Sensors[i].At.Site] = true
	}
	text := fmt.Sprintf("%s at %s · %s that ended · %s", show.Plural(len(s.Sensors), "sensor"), show.Plural(len(sites),
		"site"),
		show.Plural(s.Flows, "flow"), show.Plural(len(s.Findings), "finding"))
	if s.Refused > 0 {
		text += fmt.Sprintf(" · %s refused", show.Plural(s.Refused, "message"))
	}
	if s.Other > 0 {
		text += fmt.Sprintf(" · %s of another version", show.Plural(s.Other, "row"))
	}
	if s.Unread > 0 {
		text += fmt.Sprintf(" · %s unread in the tables", show.Plural(s.Unread, "row"))
	}
	return text
}

// SensorHeads and FindingHeads name the columns of the lines.
const (
	sensorHeads  = "sensor                       packets      rows  waiting  dropped       ring  "
	findingHeads = "time      sensor               count  finding"
)

// SensorLine returns the line of a sensor.
func SensorLine(x *Sensor, now time.Time) string {
	r := &x.Report
	state := ""
	switch {
	case now.Sub(x.Seen) > silentAfter:
		state = "silent for " + now.Sub(x.Seen).Round(time.Second).String()
	case r.Dropped > 0:
		state = "its spool was full"
	case r.KernelDropped > 0:
		state = show.Grouped(r.KernelDropped) + " packets not captured"
	case !r.Fetch:
		state = "gives no packets"
	}
	return fmt.Sprintf("%-24s %11s %9s %8s %8s %7.1f MB  %s", x.At.String(), show.Grouped(r.Packets),
		show.Grouped(r.Told[message.Flows]+r.Told[message.Findings]), show.Grouped(r.Spooled), show.Grouped(r.Dropped),
		float64(r.RingBytes)/1e6, state)
}

// FindingLine returns the line of a finding.
func FindingLine(x *Finding) string {
	text := x.Message
	if text == "" { // it comes from the tables
		text = "flow of " + x.A.String() + " and " + x.B.String()
	}
	return fmt.Sprintf("%s  %-18s %7s  %-5s %s, %s: %s", x.Last.Time().UTC().Format(time.TimeOnly), x.At.String(),
		show.Grouped(x.Count), strings.ToUpper(printable.String(x.Severity)), printable.String(x.Rule),
		printable.String(x.Side),
		printable.String(text))
}

// Text returns the snapshot as plain text, with at most so many findings.
func (s *Snapshot) Text(now time.Time, findings int) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.Heading())
	for _, c := range s.Causes {
		fmt.Fprintln(&b, c)
	}
	fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(sensorHeads, " "))
	for i := range s.Sensors {
		fmt.Fprintln(&b, strings.TrimRight(SensorLine(&s.Sensors[i], now), " "))
	}
	fmt.Fprintf(&b, "\n%s\n", findingHeads)
	for i := range s.Findings[:min(findings, len(s.Findings))] {
		fmt.Fprintln(&b, FindingLine(&s.Findings[i]))
	}
	if more := len(s.Findings) - findings; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	return b.String()
}

package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/contrib/fleet/collect"
	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
)

// Finding is a finding of the tables: what a request needs of it.
type Finding struct {
	At    message.Place
	UID   string // of its flow
	Rule  string
	Side  string
	Count uint64
	A, B  netip.AddrPort
	Begun machine.Instant // of the flow
	First machine.Instant
	Last  machine.Instant
	// Ended is when the flow's last packet was captured; 0 if the tables do not have the flow yet.
	Ended       machine.Instant
	Provisional bool
}

// String names a finding.
func (f *Finding) String() string {
	return fmt.Sprintf("%s of side %s, flow %s, sensor %v", printable.String(f.Rule), printable.String(f.Side),
		printable.String(f.UID), f.At)
}

// Choice selects findings. An empty field selects all.
type Choice struct{ Site, Sensor, Rule, UID string }

type findingRow struct {
	Site        string `parquet:"site"`
	Sensor      string `parquet:"sensor"`
	UID         string `parquet:"uid"`
	A           string `parquet:"a"`
	B           string `parquet:"b"`
	Begun       int64  `parquet:"begun,timestamp(nanosecond)"`
	Time        int64  `parquet:"time,timestamp(nanosecond)"`
	LastTime    int64  `parquet:"last_time,timestamp(nanosecond)"`
	Rule        string `parquet:"rule"`
	Side        string `parquet:"side"`
	Count       uint64 `parquet:"count"`
	Provisional *bool  `parquet:"provisional,optional"`
}

type flowRow struct {
	UID      string `parquet:"uid"`
	LastTime int64  `parquet:"last_time,timestamp(nanosecond)"`
}

// Find reads the findings of a collector's tables, the newest first. It returns one of each rule and
// side of a flow. most bounds how many are kept.
func Find(folder string, c Choice, most int) ([]*Finding, error) {
	list := map[string]*Finding{}
	err := read(folder, message.Findings, c.Site, func(r *findingRow) error {
		if c.Sensor != "" && c.Sensor != r.Sensor || c.Rule != "" && c.Rule != r.Rule || c.UID != "" && c.UID != r.UID {
			return nil
		}
		f, err := r.finding()
		if err != nil {
			return err
		}
		list[f.String()] = f // a later row of the same finding counts more
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]*Finding, 0, len(list))
	byFlow := map[string][]*Finding{}
	for _, f := range list {
		all = append(all, f)
		byFlow[f.UID] = append(byFlow[f.UID], f)
	}
	slices.SortFunc(all, func(x, y *Finding) int {
		if x.Last != y.Last {
			return int(min(1, max(-1, y.Last-x.Last)))
		}
		return strings.Compare(x.String(), y.String())
	})
	err = read(folder, message.Flows, c.Site, func(r *flowRow) error {
		for _, f := range byFlow[r.UID] {
			f.Ended = machine.Instant(r.LastTime)
		}
		return nil
	})
	return all[:min(len(all), most)], err
}

func (r *findingRow) finding() (*Finding, error) {
	f := &Finding{
		At: message.Place{Site: r.Site, Sensor: r.Sensor}, UID: r.UID, Rule: r.Rule, Side: r.Side, Count: r.Count,
		Begun: machine.Instant(r.Begun), First: machine.Instant(r.Time), Last: machine.Instant(r.LastTime),
		Provisional: r.Provisional != nil && *r.Provisional,
	}
	var err error
	if f.A, err = netip.ParseAddrPort(r.A); err == nil {
		f.B, err = netip.ParseAddrPort(r.B)
	}
	return f, errors.Join(err, f.At.Check())
}

// read calls f for each row of a kind's files, in the order of the hub.
func read[R any](folder string, kind message.Kind, site string, f func(*R) error) error {
	if site == "" {
		site = "*"
	} else if err := message.CheckName("site", site); err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(folder, string(kind), "site="+site, "*.parquet"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := collect.ReadFile(name, rowsAtOnce, f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

const rowsAtOnce = 256 // that are read into memory

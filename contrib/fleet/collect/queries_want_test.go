package collect

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ackscope/ackscope/internal/queries"
)

// latest returns the rows of which no later one says the same.
func latest(list []told, same func(x, y *told) bool) (kept []told) {
	for i := range list {
		if !slices.ContainsFunc(list[i+1:], func(later told) bool {
			return later.at == list[i].at && later.flow == list[i].flow && same(&later, &list[i])
		}) {
			kept = append(kept, list[i])
		}
	}
	return kept
}

func (x *tables) ended() []told {
	return latest(x.flows, func(*told, *told) bool { return true })
}

func micros(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func clock(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err) // the command line wrote it
	}
	return t.Truncate(time.Microsecond)
}

var gravity = map[string]int{"note": 1, "warn": 2, "error": 3}

func (x *tables) lastHour(now time.Time) (rows [][]any) {
	type sum struct {
		sensors, flows, open map[string]bool
		count                int
		seen                 time.Time
	}
	sums := map[[3]string]*sum{}
	for _, f := range latest(x.findings, func(x, y *told) bool {
		return x.of.Text("rule") == y.of.Text("rule") && x.of.Text("side") == y.of.Text("side") &&
			x.of.Text("certainty") == y.of.Text("certainty")
	}) {
		ended := slices.ContainsFunc(x.findings, func(o told) bool {
			return o.at == f.at && o.flow == f.flow && !o.open
		})
		if f.open && ended || now.Sub(f.stored) > time.Hour {
			continue
		}
		key := [3]string{f.at.Site, f.of.Text("severity"), f.of.Text("rule")}
		if sums[key] == nil {
			sums[key] = &sum{map[string]bool{}, map[string]bool{}, map[string]bool{}, 0, time.Time{}}
		}
		s := sums[key]
		s.sensors[f.at.Sensor], s.flows[f.flow] = true, true
		if f.open {
			s.open[f.flow] = true
		}
		s.count += f.of.Number("count")
		if last := clock(f.of.Text("last_time")); last.After(s.seen) {
			s.seen = last
		}
	}
	for key, s := range sums {
		rows = append(rows, []any{key[0], key[1], key[2], len(s.sensors), len(s.flows), len(s.open), s.count, micros(s.seen)})
	}
	slices.SortFunc(rows, func(x, y []any) int {
		return cmp.Or(gravity[y[1].(string)]-gravity[x[1].(string)], y[4].(int)-x[4].(int), queries.Last(x[0], y[0]),
			queries.Last(x[2], y[2]))
	})
	return rows
}

var (
	port = regexp.MustCompile(`:\d+$`)
	ipv4 = regexp.MustCompile(`^(\d+\.\d+\.\d+)\.\d+$`)
)

func host(address string) string    { return port.ReplaceAllString(address, "") }
func network(address string) string { return ipv4.ReplaceAllString(host(address), "$1.0/24") }

func (x *tables) commonCause(now time.Time) (rows [][]any) {
	var flows []told
	for _, f := range x.ended() {
		if now.Sub(f.stored) <= time.Hour {
			flows = append(flows, f)
		}
	}
	rules, networks := map[string]bool{}, map[string]bool{}
	has := func(f *told, rule string) bool {
		return slices.ContainsFunc(x.findings, func(o told) bool {
			return o.at == f.at && o.flow == f.flow && !o.open && o.of.Text("rule") == rule
		})
	}
	for _, f := range x.findings {
		rules[f.of.Text("rule")] = true
	}
	for _, f := range flows {
		networks[network(f.of.Text("a"))], networks[network(f.of.Text("b"))] = true, true
	}
	for rule := range rules {
		for net := range networks {
			sites, with, within, others, withOthers := map[string]bool{}, 0, 0, 0, 0
			for i := range flows {
				f := &flows[i]
				is := has(f, rule)
				if network(f.of.Text("a")) != net && network(f.of.Text("b")) != net {
					others++
					if is {
						withOthers++
					}
					continue
				}
				within++
				if is {
					with++
					sites[f.at.Site] = true
				}
			}
			if len(sites) < 2 {
				continue
			}
			share, elsewhere := float64(with)/float64(within), any(nil)
			if others > 0 {
				elsewhere = float64(withOthers) / float64(others)
			}
			rows = append(rows, []any{
				rule, net, len(sites), strings.Join(slices.Sorted(maps.Keys(sites)), ", "), with, within,
				withOthers, others, share, elsewhere,
			})
		}
	}
	difference := func(row []any) any {
		if row[9] == nil {
			return nil
		}
		return row[8].(float64) - row[9].(float64)
	}
	slices.SortFunc(rows, func(x, y []any) int {
		return cmp.Or(queries.Falling(difference(x), difference(y)), queries.Last(x[0], y[0]), queries.Last(x[1], y[1]))
	})
	return rows
}

func (x *tables) gaps() (rows [][]any) {
	for kind, list := range map[string][]told{"flows": x.flows, "findings": x.findings} {
		seen := map[[3]string]map[uint64]bool{}
		last := map[[3]string]time.Time{}
		for _, f := range list {
			key := [3]string{f.at.Site, f.at.Sensor, f.id.Epoch}
			if seen[key] == nil {
				seen[key] = map[uint64]bool{}
			}
			seen[key][f.id.Seq], last[key] = true, f.stored
		}
		for key, numbers := range seen {
			newest, missing, first := slices.Max(slices.Collect(maps.Keys(numbers))), 0, any(nil)
			for n := uint64(1); n < newest; n++ {
				if !numbers[n] {
					if missing++; first == nil {
						first = int(n)
					}
				}
			}
			rows = append(rows, []any{
				kind, key[0], key[1], key[2], len(numbers), int(newest), missing, first, 0,
				micros(last[key]),
			})
		}
	}
	slices.SortFunc(rows, func(x, y []any) int {
		return cmp.Or(y[6].(int)-x[6].(int), queries.Last(x[0], y[0]), queries.Last(x[1], y[1]), queries.Last(x[2], y[2]),
			queries.Last(x[3], y[3]))
	})
	return rows
}

func (x *tables) qualityByHour() (rows [][]any) {
	type place struct{ site, hour string }
	flows := map[place][]queries.Row{}
	for _, f := range x.ended() {
		p := place{f.at.Site, micros(clock(f.of.Text("last_time")).UTC().Truncate(time.Hour))}
		flows[p] = append(flows[p], f.of)
	}
	for p, list := range flows {
		errors, unexplained := 0, 0
		for _, f := range list {
			if f.Number("errors") > 0 {
				errors++
			}
			if f["errors"] == nil {
				unexplained++
			}
		}
		loss, lossUnknown := queries.Known(list, "path_loss")
		rtt, rttUnknown := queries.Known(list, "wire_rtt_ms")
		rows = append(rows, []any{
			p.site, p.hour, len(list), errors, unexplained, lossUnknown, queries.Quantile(0.5, loss),
			queries.Quantile(0.95, loss), rttUnknown, queries.Quantile(0.5, rtt), queries.Quantile(0.95, rtt),
		})
	}
	slices.SortFunc(rows, func(x, y []any) int { return cmp.Or(queries.Last(x[0], y[0]), queries.Last(x[1], y[1])) })
	return rows
}

func (x *tables) topTalkers(now time.Time) (rows [][]any) {
	type sum struct {
		sites                 map[string]bool
		flows, packets, bytes int
		took                  time.Duration
	}
	sums := map[string]*sum{}
	for _, f := range x.ended() {
		if now.Sub(f.stored) > 24*time.Hour {
			continue
		}
		took := clock(f.of.Text("last_time")).Sub(clock(f.of.Text("time")))
		for _, side := range []string{"a", "b"} {
			address := host(f.of.Text(side))
			if sums[address] == nil {
				sums[address] = &sum{sites: map[string]bool{}}
			}
			s := sums[address]
			s.sites[f.at.Site] = true
			s.flows++
			s.packets += f.of.Number("packets_" + side)
			s.bytes += f.of.Number("bytes_" + side)
			s.took += took
		}
	}
	for address, s := range sums {
		var rate any
		if s.took > 0 {
			rate = float64(s.bytes) / s.took.Seconds()
		}
		rows = append(rows, []any{address, len(s.sites), s.flows, s.packets, s.bytes, rate})
	}
	slices.SortFunc(rows, func(x, y []any) int { return cmp.Or(y[4].(int)-x[4].(int), queries.Last(x[0], y[0])) })
	return rows[:min(20, len(rows))]
}

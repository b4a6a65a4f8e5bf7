package queries

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// sample is a capture with its labels, and what the command line says of it.
type sample struct {
	name                    string
	build, region, platform any // nil or a text
	state                   string
	flows, findings         []Row
}

// samples writes a manifest over captures of two builds, and of others. It has every case in which a figure is not
// known. One capture cannot be read, and one no protocol explains. Some have no label. One protocol is of one build.
func samples(t *testing.T, program, folder string) (list []sample, manifest string) {
	t.Helper()
	put := func(name string, b []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	srdp := filepath.Join(folder, "srdp.pcapng")
	testenv.Output(t, program, "simulate", "-q", "--protocol", "srdp", "--seed", "1", "--duration", "4s", "--loss",
		"10%", "-w", srdp)
	whole := testenv.Unpacked(t, testenv.Capture(t, "crc32-clean.client.pcap.gz"))
	lines := "capture,build,region,platform\n"
	for _, x := range []struct{ path, build, region, platform, state string }{
		{testenv.Capture(t, "reliable-clean.client.pcap.gz"), "1.4", "eu", "pc", "ok"},
		{testenv.Capture(t, "reliable-loss10.client.pcap.gz"), "1.4", "us", "console", "ok"},
		{testenv.Capture(t, "u210_loss10.client.pcapng.gz"), "1.4", "us", "pc", "ok"},
		{testenv.Capture(t, "t210_clean.client.pcap.gz"), "1.4", "us", "console", "ok"},
		{testenv.Capture(t, "plain-le-clean.client.pcap.gz"), "1.4", "", "console", "ok"},
		{put("unexplained.pcap", Unexplained()), "1.4", "eu", "pc", "ok"},
		{put("noise.pcap", []byte("no capture at all")), "1.4", "eu", "pc", "unreadable"},
		{testenv.Capture(t, "reliable-burst.client.pcap.gz"), "1.5", "eu", "pc", "ok"},
		{testenv.Capture(t, "reliable-loss40.client.pcapng.gz"), "1.5", "us", "", "ok"},
		{testenv.Capture(t, "u210_falseack.client.pcap.gz"), "1.5", "us", "pc", "ok"},
		{testenv.Capture(t, "reliable-two-clients.server.pcap.gz"), "1.5", "eu", "console", "ok"},
		{testenv.Capture(t, "reliable-stale.client.pcap.gz"), "1.5", "", "pc", "ok"},
		{put("cut.pcap", whole[:len(whole)/2+1]), "1.5", "eu", "console", "cut"},
		{srdp, "1.5", "as", "console", "ok"},
		{testenv.Capture(t, "reliable-loss40.server.pcapng.gz"), "1.10", "us", "pc", "ok"}, // text, and no number
	} {
		lines += fmt.Sprintf("%s,%s,%s,%s\n", x.path, x.build, x.region, x.platform)
		s := sample{name: x.path, build: label(x.build), region: label(x.region), platform: label(x.platform), state: x.state}
		if x.state != "unreadable" {
			s.flows, s.findings = RowsOf(t, program, "flows", x.path), RowsOf(t, program, "findings", x.path)
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y sample) int { return cmp.Compare(x.name, y.name) })
	return list, put("captures.csv", []byte(lines))
}

func label(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// TestStudio: every query of a studio returns what a computation over the command line's rows returns.
func TestStudio(t *testing.T) {
	testenv.Grid(t, "npm installs a database")
	engines, program, folder := Install(t), Program(t), t.TempDir()
	list, manifest := samples(t, program, folder)
	batch := exec.Command(program, "batch", "-q", "-o", "tables", "--manifest", manifest)
	batch.Dir = folder
	if said, err := batch.CombinedOutput(); batch.ProcessState == nil || batch.ProcessState.ExitCode() != 2 {
		t.Fatalf("expected exit 2 for the capture that cannot be read, found %v\n%s", err, said)
	}
	want := map[string][][]any{
		"studio-worse-rules":     worseRules(list),
		"studio-new-rules":       newRules(list),
		"studio-network-quality": networkQuality(list),
		"studio-worst-captures":  worstCaptures(list),
		"studio-resends":         resends(list),
	}
	for _, e := range engines {
		got := e.Run(t, folder, Names("studio-")...)
		for _, name := range Names("studio-") {
			Compare(t, e.Engine, name, got[name], want[name])
		}
	}
}

const before, after = "1.4", "1.5"

// protocolOf returns the protocol of a flow or a finding.
func protocolOf(r Row) string { return cmp.Or(r.Text("protocol"), "none") }

func worseRules(list []sample) (rows [][]any) {
	type place struct {
		region   any
		protocol string
	}
	type rule struct {
		place
		rule, severity string
	}
	flows := map[place]map[any]int{} // by build
	with := map[rule]map[any]map[string]bool{}
	for _, s := range list {
		if s.build != before && s.build != after {
			continue
		}
		for _, f := range s.flows {
			p := place{s.region, protocolOf(f)}
			if flows[p] == nil {
				flows[p] = map[any]int{}
			}
			flows[p][s.build]++
		}
		for _, x := range s.findings {
			r := rule{place{s.region, protocolOf(x)}, x.Text("rule"), x.Text("severity")}
			if with[r] == nil {
				with[r] = map[any]map[string]bool{before: {}, after: {}}
			}
			flow := fmt.Sprint(s.name, x.Number("flow"))
			with[r][s.build][flow] = with[r][s.build][flow] || x.Text("certainty") == "certain"
		}
	}
	for r, by := range with {
		certain := 0
		for _, is := range by[after] {
			if is {
				certain++
			}
		}
		n := flows[r.place]
		old, now := PerThousand(len(by[before]), n[before]), PerThousand(len(by[after]), n[after])
		var change any
		if old != nil && now != nil {
			change = now.(float64) - old.(float64)
		}
		rows = append(rows, []any{
			r.region, r.protocol, r.rule, r.severity, len(by[before]), n[before], len(by[after]), n[after], certain, old, now,
			change,
		})
	}
	slices.SortFunc(rows, func(x, y []any) int {
		return cmp.Or(Falling(x[11], y[11]), Last(x[0], y[0]), Last(x[1], y[1]), Last(x[2], y[2]), Last(x[3], y[3]))
	})
	return rows
}

var gravity = map[string]int{"note": 1, "warn": 2, "error": 3}

func newRules(list []sample) (rows [][]any) {
	flows := map[string]map[any]int{}
	type rule struct{ protocol, rule string }
	had := map[rule]bool{}
	type found struct {
		severity string
		flows    map[string]bool
		captures map[string]bool
		first    []any // capture, frame, message
	}
	now := map[rule]*found{}
	for _, s := range list { // by name
		for _, f := range s.flows {
			if flows[protocolOf(f)] == nil {
				flows[protocolOf(f)] = map[any]int{}
			}
			flows[protocolOf(f)][s.build]++
		}
		for _, x := range s.findings {
			r := rule{protocolOf(x), x.Text("rule")}
			if s.build == before {
				had[r] = true
			}
			if s.build != after {
				continue
			}
			f := now[r]
			if f == nil {
				f = &found{flows: map[string]bool{}, captures: map[string]bool{}}
				now[r] = f
			}
			if gravity[x.Text("severity")] > gravity[f.severity] {
				f.severity = x.Text("severity")
			}
			f.flows[fmt.Sprint(s.name, x.Number("flow"))], f.captures[s.name] = true, true
			place := []any{s.name, x.Number("frame"), x.Text("message"), x.Number("flow"), x.Text("side")}
			if f.first == nil || f.first[0] == s.name && cmp.Or(cmp.Compare(x.Number("frame"), f.first[1].(int)),
				cmp.Compare(x.Number("flow"), f.first[3].(int)), cmp.Compare(x.Text("side"), f.first[4].(string)),
				cmp.Compare(x.Text("message"), f.first[2].(string))) < 0 {
				f.first = place
			}
		}
	}
	for r, f := range now {
		if n := flows[r.protocol]; !had[r] && n[before] > 0 {
			rows = append(rows, []any{
				f.severity, r.protocol, r.rule, len(f.flows), n[after], n[before], len(f.captures), f.first[0], f.first[1],
				f.first[2],
			})
		}
	}
	slices.SortFunc(rows, func(x, y []any) int {
		return cmp.Or(gravity[y[0].(string)]-gravity[x[0].(string)], y[3].(int)-x[3].(int), Last(x[1], y[1]),
			Last(x[2], y[2]))
	})
	return rows
}

func networkQuality(list []sample) (rows [][]any) {
	type place struct{ build, region any }
	flows := map[place][]Row{}
	for _, s := range list {
		p := place{s.build, s.region}
		flows[p] = append(flows[p], s.flows...)
	}
	for p, list := range flows {
		loss, lossUnknown := Known(list, "path_loss")
		rtt, rttUnknown := Known(list, "wire_rtt_ms")
		rows = append(rows, []any{
			p.build, p.region, 2 * len(list), lossUnknown, Quantile(0.5, loss), Quantile(0.95, loss), rttUnknown,
			Quantile(0.5, rtt), Quantile(0.95, rtt),
		})
	}
	slices.SortFunc(rows, func(x, y []any) int { return cmp.Or(Last(x[0], y[0]), Last(x[1], y[1])) })
	return rows
}

func worstCaptures(list []sample) (rows [][]any) {
	most := func(flows []Row, column string) any {
		values, _ := Known(flows, column)
		if len(values) == 0 {
			return nil
		}
		return slices.Max(values)
	}
	for _, s := range list {
		errors, warnings, unexplained := 0, 0, 0
		for _, f := range s.flows {
			if f.Number("errors") > 0 {
				errors++
			}
			if f.Number("warnings") > 0 {
				warnings++
			}
			if f["errors"] == nil {
				unexplained++
			}
		}
		gravest := []any{nil, nil, nil}
		if len(s.findings) > 0 {
			x := slices.MinFunc(s.findings, func(x, y Row) int {
				return cmp.Or(gravity[y.Text("severity")]-gravity[x.Text("severity")], x.Number("frame")-y.Number("frame"),
					x.Number("flow")-y.Number("flow"), strings.Compare(x.Text("rule"), y.Text("rule")),
					strings.Compare(x.Text("side"), y.Text("side")), strings.Compare(x.Text("message"), y.Text("message")))
			})
			gravest = []any{x.Number("frame"), x.Text("rule"), x.Text("message")}
		}
		rows = append(rows, append([]any{
			s.name, s.build, s.state, len(s.flows), errors, warnings, unexplained, most(s.flows, "path_loss"),
			most(s.flows, "rtt_p95_ms"),
		}, gravest...))
	}
	slices.SortFunc(rows, func(x, y []any) int {
		return cmp.Or(y[4].(int)-x[4].(int), y[5].(int)-x[5].(int), Falling(x[7], y[7]), Last(x[0], y[0]))
	})
	return rows
}

func resends(list []sample) (rows [][]any) {
	type place struct {
		platform            any
		protocol, transport string
	}
	type sum struct{ sides, unknown, packets, resends int }
	sums := map[place]*sum{}
	for _, s := range list {
		for _, f := range s.flows {
			p := place{s.platform, protocolOf(f), f.Text("transport")}
			if sums[p] == nil {
				sums[p] = &sum{}
			}
			for _, side := range []string{"_a", "_b"} {
				if f["resends"+side] == nil {
					sums[p].unknown++
					continue
				}
				sums[p].sides++
				sums[p].packets += f.Number("packets" + side)
				sums[p].resends += f.Number("resends" + side)
			}
		}
	}
	for p, n := range sums {
		var packets, resends any
		if n.sides > 0 {
			packets, resends = n.packets, n.resends
		}
		rows = append(rows, []any{
			p.platform, p.protocol, p.transport, n.sides, n.unknown, packets, resends, PerThousand(n.resends, n.packets),
		})
	}
	slices.SortFunc(rows, func(x, y []any) int {
		return cmp.Or(Falling(x[7], y[7]), Last(x[0], y[0]), Last(x[1], y[1]), Last(x[2], y[2]))
	})
	return rows
}

// TestEqual: the comparison tells values apart, and unknown from zero.
func TestEqual(t *testing.T) {
	for _, x := range []struct {
		got, want any
		is        bool
	}{
		{nil, nil, true},
		{nil, 0, false},
		{json.Number("0"), nil, false},
		{json.Number("0"), 0, true},
		{json.Number("0"), 0.0, true},
		{json.Number("1"), 1.0000001, false},
		{"1.4", "1.4", true},
		{json.Number("1.4"), "1.4", false},
		{"", nil, false},
		{json.Number("3"), math.NaN(), false},
	} {
		if equal(x.got, x.want) != x.is {
			t.Errorf("%#v and %#v: expected equal %v", x.got, x.want, x.is)
		}
	}
}

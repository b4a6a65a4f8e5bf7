package realbuilds

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

const (
	// page has the tables. ACKSCOPE_REALBUILDS=update writes them.
	page = "docs/faults.md"
	// before has the shares of commit 8189a1f, the last before issue 21. It is written
	// by ACKSCOPE_REALBUILDS=before, in a checkout of that commit with this package.
	before = "testdata/before.txt"
)

var trailing = regexp.MustCompile(`(?m) +$`)

// hold compares a table with the page, or writes it.
func hold(t *testing.T, target string, table []byte) {
	t.Helper()
	t.Logf("\n%s", table)
	if !t.Failed() {
		testenv.HoldTable(t, filepath.Join(testenv.Module(t), page), target, table,
			os.Getenv("ACKSCOPE_REALBUILDS") == "update")
	}
}

// TestRunsTable makes the table of the runs.
func TestRunsTable(t *testing.T) {
	testenv.Grid(t, "TestVerdicts holds the same")
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\t\tclient's tap\t\tserver's tap\t\twrongly\t")
	fmt.Fprintln(w, "run\tmistake in the client's build\tnone could\tnamed\tnone could\tnamed\taccused\t")
	for i := range runs {
		r := &runs[i]
		cells, wrongly := map[string]string{}, 0
		for _, tap := range r.taps() {
			none, named := "-", "-"
			if r.breaks[tap] > 0 {
				none = fmt.Sprint(r.breaks[tap])
			}
			for _, a := range say(t, r.name, load(t, r.capture(tap))).accused() {
				if !a.client || a.frame != uint64(r.breaks[tap]) {
					wrongly++
					continue
				}
				if named = fmt.Sprint(a.frame); a.certainty != machine.Certain {
					named += " " + a.certainty.String()
				}
			}
			cells[tap] = none + "\t" + named
		}
		mistake := r.mistake
		if r.honest() {
			mistake = "none"
		}
		if cells[server] == "" {
			cells[server] = "\t"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t\n", r.name, mistake, cells[client], cells[server], wrongly)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	hold(t, "make realbuilds", trailing.ReplaceAll(table.Bytes(), nil))
}

// shares counts what Ackscope settles about the sides of captures.
type shares struct{ compared, decided, facts, certain uint64 }

func (s *shares) add(x shares) {
	s.compared += x.compared
	s.decided += x.decided
	s.facts += x.facts
	s.certain += x.certain
}

func percent(part, of uint64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100*float64(part)/float64(of))
}

// group is a library at one tap, and the side that stands at the tap or not.
type group struct {
	library, tap string
	near         bool
}

func (g group) String() string {
	if g.near {
		return fmt.Sprintf("%s %s near", g.library, g.tap)
	}
	return fmt.Sprintf("%s %s far", g.library, g.tap)
}

// libraryOf returns the library of a capture, by the prefix of its name.
func libraryOf(name string) string {
	for _, p := range [][2]string{
		{"rel12", "reliable-1.2"},
		{"221-gap", "riptide-2.2.1"},
		{"head-loss", "riptide-main"},
		{"rip", "riptide-2.2.1"},
		{"upy", "pytide"},
		{"tpy", "pytide-tcp"},
		{"u200", "riptide-2.0.0"},
		{"u210", "riptide-2.1.0"},
		{"u212", "riptide-2.1.2"},
		{"u21d", "riptide-2.1-dev-d"},
		{"u21n", "riptide-2.1-dev-n"},
		{"u22", "riptide-2.2.1"},
		{"t2", "riptide-tcp"},
		{"rely", "rely"},
	} {
		if strings.HasPrefix(name, p[0]) {
			return p[1]
		}
	}
	if kind, _, ok := strings.Cut(name, "-"); ok {
		return kind
	}
	return "reliable" // the runs of realbuilds
}

// captures returns the names of all recorded captures, below testdata/pcaps.
func captures(t *testing.T) (list []string) {
	t.Helper()
	for _, pattern := range []string{"*.pcap*.gz", "realbuilds/*.pcap*.gz", "family/*.pcap*.gz"} {
		paths, err := filepath.Glob(filepath.Join(testenv.Capture(t, ""), filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			list = append(list, filepath.Join(filepath.Dir(pattern), filepath.Base(p)))
		}
	}
	return list
}

// count returns what Ackscope settles, by group.
func count(t *testing.T) map[group]*shares {
	t.Helper()
	all := map[group]*shares{}
	for _, file := range captures(t) {
		name, rest, _ := strings.Cut(filepath.Base(file), ".")
		tap, _, _ := strings.Cut(rest, ".")
		left := slices.ContainsFunc(runs, func(r run) bool { return r.name == name && (!r.honest() || r.added) })
		if tap != client && tap != server || left || strings.HasPrefix(name, "linktype") {
			continue // a side is not compared further once it diverges
		}
		x := say(t, file, load(t, file))
		for _, side := range []machine.Side{machine.A, machine.B} {
			var s shares
			s.compared, s.decided = x.decided(side)
			for _, f := range x.facts {
				if f.Side == side {
					s.facts++
					if f.Certainty == machine.Certain {
						s.certain++
					}
				}
			}
			g := group{libraryOf(name), tap, (side == machine.A) == (tap == client)}
			if all[g] == nil {
				all[g] = &shares{}
			}
			all[g].add(s)
		}
	}
	return all
}

// fewer says why a share may be lower than before, by group.
var fewer = map[string]string{
	"reliable client near":     "facts 2: 125 duplicates, as the version that refuses them is not told apart",
	"reliable server near":     "facts 2: 139 duplicates, likewise",
	"reliable-1.2 client near": "facts 2: 35 duplicates, which that version hands over",
	"reliable-1.2 server near": "facts 2: 40 duplicates, likewise",
	"pytide client near":       "facts 8: 13 acks whose order within a poll decides",
	"pytide server near":       "facts 8: 17 acks, likewise",
	"rely client far":          "before, the port was compared up to its first divergence only: 12 packets",
	"rely server far":          "before, likewise: 9 packets",
}

// TestShares: ackscope does not come to be right by saying less. Of each library and
// tap it decides no smaller share of the packets than before issue 21. It calls no
// smaller share of the facts certain. The exceptions are in fewer.
func TestShares(t *testing.T) {
	testenv.Grid(t, "all recorded captures")
	now := count(t)
	groups := make([]group, 0, len(now))
	for g := range now {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b group) int { return strings.Compare(a.String(), b.String()) })
	if os.Getenv("ACKSCOPE_REALBUILDS") == "before" {
		var text bytes.Buffer
		for _, g := range groups {
			s := now[g]
			fmt.Fprintln(&text, g, s.compared, s.decided, s.facts, s.certain)
		}
		if err := os.WriteFile(before, text.Bytes(), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
		return
	}
	was := readBefore(t)
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\t\t\tpackets decided, %\t\tfacts certain, %\t\t")
	fmt.Fprintln(w, "library\ttap\tside\tbefore\tnow\tbefore\tnow\t")
	for _, g := range groups {
		s, b := now[g], was[g]
		if s.compared+s.facts == 0 {
			continue
		}
		side := "far"
		if g.near {
			side = "at the tap"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", g.library, g.tap, side, percent(b.decided, b.compared),
			percent(s.decided, s.compared), percent(b.certain, b.facts), percent(s.certain, s.facts))
		lower := lower(s.decided, s.compared, b.decided, b.compared) || lower(s.certain, s.facts, b.certain, b.facts)
		switch reason, known := fewer[g.String()]; {
		case lower && !known:
			t.Errorf("%s: decided %d of %d, certain %d of %d; before %d of %d, %d of %d", g, s.decided, s.compared,
				s.certain, s.facts, b.decided, b.compared, b.certain, b.facts)
		case known && !lower:
			t.Errorf("%s: no share is lower than before: remove it from fewer (%s)", g, reason)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	hold(t, "make realbuilds: shares", trailing.ReplaceAll(table.Bytes(), nil))
}

// lower reports whether a share is lower than before by more than 0.05 of 100.
func lower(part, of, partBefore, ofBefore uint64) bool {
	if of == 0 || ofBefore == 0 {
		return false
	}
	return float64(part)/float64(of) < float64(partBefore)/float64(ofBefore)-0.0005
}

func readBefore(t *testing.T) map[group]shares {
	t.Helper()
	text, err := os.ReadFile(before)
	if err != nil {
		t.Fatal(err)
	}
	all := map[group]shares{}
	for line := range strings.Lines(string(text)) {
		var g group
		var side string
		var s shares
		if _, err := fmt.Sscan(line, &g.library, &g.tap, &side, &s.compared, &s.decided, &s.facts, &s.certain); err != nil {
			t.Fatalf("%s: %q: %v", before, line, err)
		}
		g.near = side == "near"
		all[g] = s
	}
	return all
}

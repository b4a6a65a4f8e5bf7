package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// comparedRuns are the simulated games of TestComparePairs: 10 minutes at 5 % loss. The value again
// makes the resend timer shorter. Then a side sends about a fifth more again.
var comparedRuns = []struct {
	name         string
	flags        []string
	usual, again string // the flag of the resend timer, and its values
	timer        string
}{
	{
		"riptide", []string{
			"--protocol", "riptide:2.1", "--no-limits", "--messages", "40", "--rate", "70", "--jitter", "25ms",
		}, "200ms", "165ms", "--resend",
	},
	{"srdp", []string{"--protocol", "srdp", "--rate", "30", "--jitter", "36ms"}, "201ms", "167ms", "--timeout"},
	{
		"gaffer", []string{
			"--profiles", "../docs/gaffer-example.yaml", "--protocol", "gaffer:example", "--messages", "20", "--rate", "60",
			"--jitter", "30200us",
		}, "170ms", "128ms", "--resend",
	},
}

// comparedSeed is the first seed. The limits of compare were not tuned on these runs.
const comparedSeed = 300_000

// comparison is what `compare --json` says, as far as the test needs it.
type comparison struct {
	Worse       int
	Differences []struct {
		Way, Figure, Grade string
		Change             float64
	}
	Figures []struct {
		Way, Figure   string
		Before, After *float64
	}
	Findings []struct {
		Rule string
		Real bool
	}
}

// reports reports whether the comparison tells a difference, or one of a figure for the
// worse.
func (c *comparison) reports(figure string) bool {
	for _, d := range c.Differences {
		if figure == "" || strings.HasPrefix(d.Figure, figure) && d.Grade == "worse" {
			return true
		}
	}
	for _, f := range c.Findings {
		if f.Real && figure == "" {
			return true
		}
	}
	return false
}

// Of pairs of runs without a difference, at most 5 % report one. Of pairs with a fifth more
// resends, or with 20 ms more delay, at least 95 % report that: later arrivals, or longer
// round trips. ACKSCOPE_COMPARE is the number of pairs of each protocol; 67 make 200 in all.
func TestComparePairs(t *testing.T) {
	mode, pairs := os.Getenv("ACKSCOPE_COMPARE"), 1
	if mode != "" {
		var err error
		if pairs, err = strconv.Atoi(mode); err != nil || pairs < 1 {
			t.Fatalf("ACKSCOPE_COMPARE=%q: expected a number of pairs", mode)
		}
	}
	var table strings.Builder
	row := func(protocol string, pairs int, counts [4]int) {
		fmt.Fprintf(&table, "%-10s%5d  %23d  %20d  %16d  %12d\n", protocol, pairs, counts[0], counts[1], counts[2], counts[3])
	}
	fmt.Fprintf(&table, "%-10s%5s  %23s  %20s  %16s  %12s\n", "protocol", "pairs", "no difference: reported",
		"more resends: found", "more delay: found", "by arrival")
	var all [4]int
	pairsOfAll := 0
	for i, run := range comparedRuns {
		if mode == "" && i > 0 {
			break
		}
		dir := t.TempDir()
		quiet := func(args ...string) string { // in another goroutine, a test may not end
			out, errs, code := outcome(args...)
			if code != 0 {
				t.Errorf("ackscope %q: exit %d: %s", args, code, errs)
			}
			return out
		}
		simulated := func(name string, seed int, flags ...string) string {
			path := filepath.Join(dir, name+strconv.Itoa(seed)+".pcapng")
			quiet(append(append([]string{
				"simulate", "-q", "--loss", "5%", "--duration", "600s", "--seed", strconv.Itoa(seed), "-w", path,
			}, run.flags...), flags...)...)
			return path
		}
		compared := func(before, after string) (c comparison) {
			args := []string{"compare", "-q", "--json"}
			if run.flags[0] == "--profiles" {
				args = append(args, run.flags[:2]...)
			}
			if err := json.Unmarshal([]byte(quiet(append(args, before, after)...)), &c); err != nil {
				t.Error(err)
			}
			return c
		}
		var counts [4]int
		var resends [2]float64
		var mu sync.Mutex
		var wait sync.WaitGroup
		turns := make(chan int)
		for range runtime.GOMAXPROCS(0) {
			wait.Go(func() {
				for n := range turns {
					usual := []string{"--delay", "30ms", run.timer, run.usual}
					before := simulated("before", comparedSeed+4*n, usual...)
					for kind, flags := range [][]string{
						usual,
						{"--delay", "30ms", run.timer, run.again},
						{"--delay", "50ms", run.timer, run.usual},
					} {
						after := simulated("after", comparedSeed+4*n+1+kind, flags...)
						c := compared(before, after)
						mu.Lock()
						byArrival := kind == 2 && c.reports("arrival")
						found := byArrival || c.reports([]string{"", "resends", "rtt"}[kind])
						if found {
							counts[kind]++
						}
						if byArrival {
							counts[3]++
						}
						if found == (kind == 0) {
							t.Logf("%s, pair %d, kind %d: %+v %+v", run.name, n, kind, c.Differences, c.Findings)
						}
						for _, f := range c.Figures {
							if kind == 1 && f.Figure == "resends" && f.Way == "both ways" && f.Before != nil && f.After != nil {
								resends[0], resends[1] = resends[0]+*f.Before, resends[1]+*f.After
							}
						}
						mu.Unlock()
						_ = os.Remove(after)
					}
					_ = os.Remove(before)
				}
			})
		}
		for n := range pairs {
			turns <- n
		}
		close(turns)
		wait.Wait()
		row(run.name, pairs, counts)
		t.Logf("%s: %v; resends of the second kind %+.0f %%", run.name, counts, 100*(resends[1]/resends[0]-1))
		pairsOfAll += pairs
		for i, n := range counts {
			all[i] += n
		}
	}
	row("all", pairsOfAll, all)
	t.Log("\n" + table.String())
	if 20*all[0] > pairsOfAll || 20*all[1] < 19*pairsOfAll || 20*all[2] < 19*pairsOfAll {
		t.Errorf("of %d pairs, %d without a difference report one; %d report more resends, %d more delay", pairsOfAll, all[0],
			all[1], all[2])
	}
}

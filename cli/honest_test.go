package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
)

// TestHonestRuns: replay finds no divergence if both endpoints are correct.
// That holds for every network, and for a tap at either end or between.
func TestHonestRuns(t *testing.T) {
	seeds := 4
	if testing.Short() {
		seeds = 1
	}
	path := filepath.Join(t.TempDir(), "x.pcapng")
	for _, protocol := range []string{
		"gaffer:article", "gaffer:reliable", "gaffer:reliable-2017", "riptide:2.0",
		"riptide:2.1.0", "riptide:2.2.1", "riptide:2.1.0:tcp", "srdp",
	} {
		for seed := range seeds {
			network := []string{
				"--loss 0%", "--loss 15% --jitter 30ms --dup 5%", "--loss 5% --outage 2s,700ms,3s --delay 60ms",
				"--dup 20% --jitter 60ms --delay 5ms",
			}[seed%4]
			for _, tap := range []string{"a", "b", "between"} {
				args := append([]string{
					"simulate", "--protocol", protocol, "--seed", fmt.Sprint(seed + 1), "--tap", tap,
					"--duration", "6s", "-w", path,
				}, strings.Fields(network)...)
				var out, trouble bytes.Buffer
				if code := runKnown(args, app.Streams{Out: &out, Err: &trouble}); code != 0 {
					t.Fatalf("%v: exit %d: %s", args, code, trouble.String())
				}
				out.Reset()
				if code := runKnown([]string{"replay", "-q", path}, app.Streams{Out: &out, Err: &trouble}); code != 0 {
					t.Errorf("%v: exit %d:\n%s", args, code, out.String())
				}
			}
		}
	}
}

// TestSupposedTap: a tap that stands 2.5 ms off an endpoint looks like one at it. What was lost
// between the two makes the endpoint seem to diverge. With --vantage b the divergence is certain.
// Without it, the divergence is likely.
func TestSupposedTap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pcapng")
	simulate := "simulate -q --protocol gaffer:reliable --rate 128 --delay 5ms --loss 3%/15% --outage 2s,600ms,3s " +
		"--tap between --seed 22 --duration 9s --first 65300/65500 -w"
	run := func(args ...string) string {
		var out, trouble bytes.Buffer
		if code := runKnown(args, app.Streams{Out: &out, Err: &trouble}); code > 1 {
			t.Fatalf("%v: exit %d: %s", args, code, trouble.String())
		}
		return out.String()
	}
	run(append(strings.Fields(simulate), path)...)
	for flags, certainty := range map[string]string{
		"replay --json -q": "likely", "replay --json -q --vantage b": "certain",
	} {
		out := run(append(strings.Fields(flags), path)...)
		want := fmt.Sprintf(`"certainty":%q`, certainty)
		if !strings.Contains(out, `"verdict":"diverges"`) || !strings.Contains(out, want) {
			t.Errorf("%s: expected a divergence with %s, found %s", flags, want, out)
		}
	}
	text := run("replay", "-q", path)
	if !strings.Contains(text, "likely: the capture may have been taken away from this side") {
		t.Errorf("no sentence about the place of the capture in %s", text)
	}
}

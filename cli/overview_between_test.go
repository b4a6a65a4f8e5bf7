package cli

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
)

// TestOverviewBetween: a tap half way sees half of each round trip. The overview adds the two
// halves. Both ways take 40 ms here, and an answer waits for the next packet of its side.
func TestOverviewBetween(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pcapng")
	said := regexp.MustCompile(`RTT ([0-9]+) ms on average[^(]*\(likely: the\s+tap stands on the way`)
	for _, protocol := range []string{"gaffer:reliable", "riptide", "srdp"} {
		var out, trouble bytes.Buffer
		args := "simulate -q " + protocol +
			" --seed 7 --loss 1% --delay 40ms --jitter 2ms --duration 10s --tap between -w " + path
		if code := runKnown(strings.Fields(args), app.Streams{Out: &out, Err: &trouble}); code != 0 {
			t.Fatalf("%s: exit %d: %s", args, code, trouble.String())
		}
		out.Reset()
		runKnown([]string{"overview", path}, app.Streams{Out: &out, Err: &trouble})
		m := said.FindStringSubmatch(out.String())
		if m == nil {
			t.Errorf("%s: the overview has no sum of both halves:\n%s", protocol, out.String())
			continue
		}
		if rtt, err := strconv.Atoi(m[1]); err != nil || rtt < 80 || rtt > 110 {
			t.Errorf("%s: RTT %s ms, expected 80 to 110", protocol, m[1])
		}
	}
}

package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

var alertOf = regexp.MustCompile(
	`^(\d\d:\d\d:\d\d\.\d{6})  (?:note|warn|error) +(\S+  flow \d+ [ab] \S+  \w+): (?:([\d,]+) more, now )?(.*)$`)

// Alerts stand in the order of time. Each says what is new: how many occurrences
// came, and the frames that no alert has named yet.
func TestAlertsSayWhatIsNew(t *testing.T) {
	for _, name := range []string{"u210_loss10.server.pcap.gz", "reliable-burst.client.pcap.gz"} {
		out := output(t, "findings", "--alert", "note", testenv.Capture(t, name))
		alerts, _, ok := strings.Cut(out, "\nflow 1")
		if !ok {
			t.Fatalf("%s: no findings", name)
		}
		last, told, frames, again := "", map[string]bool{}, map[string]bool{}, 0
		for line := range strings.Lines(alerts) {
			m := alertOf.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
			if m == nil {
				continue // the verdict
			}
			if m[1] < last {
				t.Errorf("%s: %s stands behind %s", name, line, last)
			}
			last = m[1]
			if told[m[2]] != (m[3] != "") {
				t.Errorf("%s: an alert of the same finding was told: %v: %s", name, told[m[2]], line)
			}
			if told[m[2]] = true; m[3] != "" {
				again++
			}
			_, list, ok := strings.Cut(m[4], "; frame")
			for frame := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(list, "s"), " "), ", ") {
				if ok && frames[m[2]+" "+frame] {
					t.Errorf("%s: frame %s is told twice: %s", name, frame, line)
				}
				frames[m[2]+" "+frame] = true
			}
		}
		if again < 3 {
			t.Errorf("%s: %d alerts of findings that were told before: expected more to check", name, again)
		}
	}
}

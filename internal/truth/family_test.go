package truth

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// familyFact is an event of one packet, as `ackscope events` and the logs have it.
type familyFact struct {
	Event     string `json:"event"`
	Side      string `json:"side"`
	Dialect   string `json:"dialect"`
	Certainty string `json:"certainty"`
	Seq       int    `json:"seq"`      // in logs
	Sequence  int    `json:"sequence"` // in events
}

// familyFacts counts the packets of one event. keep chooses among the lines of text.
func familyFacts(t *testing.T, text []byte, keep func(*familyFact) bool) map[int]int {
	t.Helper()
	counts := map[int]int{}
	for scan := bufio.NewScanner(bytes.NewReader(text)); scan.Scan(); {
		var f familyFact
		if err := json.Unmarshal(scan.Bytes(), &f); err != nil {
			t.Fatalf("%v in %.80s", err, scan.Bytes())
		}
		if keep(&f) {
			counts[f.Seq+f.Sequence]++ // a line has one of the two
		}
	}
	return counts
}

// TestFamily reads the endpoint at the tap by the profile of its version. All that it
// received and all that was acked is found, each as often as its log says. Without the
// version, a second copy is dropped at likely at most. rely is found without being named.
func TestFamily(t *testing.T) {
	for _, c := range []struct{ library, profile, detected string }{
		{"rel12", "reliable-1.2", "reliable"},
		{"rely", "rely", "rely"},
	} {
		for tap, side := range map[string]string{"client": "a", "server": "b"} {
			run := "family/" + c.library + "." + tap
			log := unzip(t, testenv.Capture(t, run+".log.gz"))
			capture := testenv.Capture(t, run+".pcap.gz")
			decode := "udp.port==40000,gaffer:" + c.profile
			named := testenv.Output(t, testenv.Ackscope(t), "events", "--json", "-d", decode, capture)
			for _, event := range []string{"received", "acked"} {
				want := familyFacts(t, log, func(f *familyFact) bool { return f.Event == event })
				got := familyFacts(t, named, func(f *familyFact) bool {
					return f.Event == event && f.Side == side
				})
				if !maps.Equal(got, want) {
					t.Errorf("%s: %d packets %s, the log has %d: %v and %v", run, len(got), event, len(want), got, want)
				}
			}
			unnamed := testenv.Output(t, testenv.Ackscope(t), "events", "--json", capture)
			if n := familyFacts(t, unnamed, func(f *familyFact) bool { return f.Dialect != c.detected }); len(n) > 0 {
				t.Errorf("%s: not read as %s", run, c.detected)
			}
			sure := familyFacts(t, unnamed, func(f *familyFact) bool {
				return f.Event == "duplicate" && f.Certainty == "certain"
			})
			copies := familyFacts(t, unnamed, func(f *familyFact) bool { return f.Event == "duplicate" })
			if len(sure) > 0 || c.library == "rel12" && len(copies) == 0 {
				t.Errorf("%s: %d second copies, %d of them dropped for certain", run, len(copies), len(sure))
			}
		}
	}
}

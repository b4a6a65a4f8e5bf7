package arrivals

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// srdpLine is a line of the truth of a simulated run.
type srdpLine struct {
	T          float64 `json:"t"`
	Endpoint   string  `json:"endpoint"`
	Event      string  `json:"event"`
	Seq64      int64   `json:"seq64"`
	ServerPort uint16  `json:"server_port"`
}

// TestSRDPArrivals compares the arrival of each packet of simulated runs with their truth. The tap is
// at the client.
func TestSRDPArrivals(t *testing.T) {
	testenv.Long(t, "simulated runs of the program")
	program := testenv.Ackscope(t)
	groups := []group{{"SRDP reference", map[string]*row{}}}
	for seed, network := range []string{"--jitter 5ms", "--loss 10% --jitter 5ms", "--loss 20% --dup 5%"} {
		path := filepath.Join(t.TempDir(), "run.pcapng")
		args := fmt.Sprintf("simulate --protocol srdp --seed %d --delay %v %s --services any --duration 20s --rate 20",
			seed+1, delay, network)
		testenv.Output(t, program, append(strings.Fields(args), "--tap", "a", "-w", path, "--truth", path+".truth")...)
		text, err := os.ReadFile(path + ".truth")
		if err != nil {
			t.Fatal(err)
		}
		var server uint16
		sent := map[string]map[int64]machine.Instant{"client": {}, "server": {}}
		came := map[string]map[int64]machine.Instant{"client": {}, "server": {}}
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			var l srdpLine
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%v in %.80s", err, line)
			}
			if l.ServerPort != 0 {
				server = l.ServerPort
			}
			at := machine.Instant(l.T * float64(time.Second))
			if known, again := came[l.Endpoint][l.Seq64]; l.Event == "received" && (!again || at < known) {
				came[l.Endpoint][l.Seq64] = at
			}
			if l.Event == "sent" {
				sent[l.Endpoint][l.Seq64] = at
			}
		}
		session, messages := messagesOf(t, path, srdp.Protocol)
		for _, f := range session.Flows() {
			ends := [2]string{"client", "server"}
			if f.A.Port() == server {
				ends = [2]string{"server", "client"}
			}
			for i := range messages[f.ID] {
				m := &messages[f.ID][i]
				receiver := ends[m.From.Other()]
				logged, ok := came[receiver][m.Sequence64]
				if !ok {
					continue // lost
				}
				// The truth has whole microseconds.
				a := arrival{Message: m, logged: logged, sent: sent[ends[m.From]][m.Sequence64], trip: 2*delay + simulatedFrame}
				groups[0].add(network, a, receiver == "client", time.Microsecond)
			}
		}
	}
	holdGroups(t, "SRDP", groups, func(t *testing.T, r *row, _ *group) {
		t.Helper()
		r.holds(t, time.Microsecond)
		if r.share() < 0.9 { // a packet of the first moments may have been sent before the capture
			t.Errorf("%.1f%% of %d have certain bounds, expected 90%%", 100*r.share(), r.delivered)
		}
		if strings.HasSuffix(r.name, "sender") {
			r.holdsTrip(t, simulatedFrame)
		} else if wide := quantile(r.widths, 0.95); wide > simulatedFrame+time.Millisecond {
			t.Errorf("bounds are up to %v wide at the receiver's tap, 1 in 20 left out: expected a frame of %v", wide,
				simulatedFrame)
		}
		r.holdsEstimate(t, simulatedFrame)
	})
}

// simulatedFrame is the frame of the simulated games: --rate 20.
const simulatedFrame = time.Second / 20

// delay is the one-way delay of the simulated network.
const delay = 20 * time.Millisecond

package replay_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// blaming are rules of findings that blame an endpoint or the network.
var blaming = []string{
	"stalled", "stall", "one-way-silence", "loss-burst", "rtt-spike", "refused", "ack-frozen",
	"ack-window-slide", "ack-window-edge", "half-range-starvation", "out-of-order", "false-ack",
	"riptide-window-jump", "riptide-false-ack", "riptide-acked-not-delivered",
}

// TestGapsBlame: real captures of which some seconds are left out. What blames an end or the network for
// certain, the whole capture shows too.
func TestGapsBlame(t *testing.T) {
	certain := func(list *altered) (found []string) {
		s, err := analyze.RunTwice(list, analyze.Options{Registry: everyProtocol()})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Flows() {
			for _, x := range f.Findings() {
				if x.Certainty == machine.Certain && slices.Contains(blaming, x.Rule.ID) {
					found = append(found, x.Rule.ID+" "+f.Addr(x.Side).String())
				}
			}
		}
		return found
	}
	gaps := 0
	for _, name := range []string{
		"reliable-clean.client.pcap.gz", "reliable-loss10.server.pcap.gz", "reliable-two-clients.client.pcap.gz",
		"plain-le-clean.client.pcap.gz", "oldreliable-clean.client.pcap.gz", "crc32-clean.server.pcap.gz",
		"u210_clean.client.pcap.gz", "u221_lobby.client.pcapng.gz", "u21n_clean.client.pcap.gz", "t221_clean.client.pcap.gz",
	} {
		path := filepath.Join(pcaps, name)
		list := framesOf(t, path)
		whole := certain(&altered{frames: list})
		for _, length := range []int{20, 60, 300} {
			for at := range 8 {
				from := len(list) * (at + 1) / 10
				if from+length >= len(list) {
					continue
				}
				gaps++
				for _, found := range certain(&altered{frames: slices.Concat(list[:from], list[from+length:])}) {
					if !slices.Contains(whole, found) {
						t.Errorf("%s without frames %d to %d: %s is found for certain", name, from+1, from+length, found)
					}
				}
			}
		}
	}
	if gaps < 200 {
		t.Errorf("%d gaps, expected more", gaps)
	}
}

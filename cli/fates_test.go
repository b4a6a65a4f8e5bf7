package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
)

// printed runs a command and returns its output.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, trouble bytes.Buffer
	if code := run(known, args, app.Streams{In: strings.NewReader(""), Out: &out, Err: &trouble}); code != app.ExitDone {
		t.Fatalf("%s: exit %d: %s", strings.Join(args, " "), code, trouble.String())
	}
	return out.String()
}

// ackedInLog returns the numbers of the client's packets, as its own log says that they were acked.
func ackedInLog(t *testing.T, path string) map[int]bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	acked := map[int]bool{}
	for lines := bufio.NewScanner(z); lines.Scan(); {
		var l struct {
			Endpoint, Event string
			Seq             int
		}
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Endpoint == "client" && l.Event == "acked" {
			acked[l.Seq] = true
		}
	}
	return acked
}

// numbersWith returns the numbers of the packets that pass a filter.
func numbersWith(t *testing.T, path, text string) map[int]bool {
	t.Helper()
	list := map[int]bool{}
	out := printed(t, "packets", "-q", "-Y", text, "-T", "fields", "-E", "occurrence=f", "-e", "gaffer.sequence", path)
	for _, word := range strings.Fields(out) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		list[n] = true
	}
	return list
}

// TestFates: by the filter, the client's packets are acked that its own log says are, and
// every other one is lost or pending.
func TestFates(t *testing.T) {
	for _, name := range []string{"reliable-loss10", "reliable-frag-heavy", "reliable-sparse-acks", "plain-be-clean"} {
		path := "../testdata/pcaps/" + name + ".client.pcap.gz"
		want := ackedInLog(t, "../testdata/pcaps/"+name+".truth.jsonl.gz")
		got := numbersWith(t, path, "fate == acked && flow.side == a")
		if len(want) < 100 || !maps.Equal(got, want) {
			t.Errorf("%s: %d packets are acked by fate, %d by the client's log", name, len(got), len(want))
		}
		other := numbersWith(t, path, "fate && fate != acked && flow.side == a")
		all := numbersWith(t, path, "gaffer.sequence && flow.side == a")
		if len(other)+len(got) != len(all) {
			t.Errorf("%s: %d packets are acked, %d have another fate, expected %d in all", name, len(got), len(other), len(all))
		}
	}
	// The receiver's tap: what arrived and slid out of ack_bits is neither lost nor acked.
	path := "../testdata/pcaps/reliable-sparse-acks.server.pcap.gz"
	if n := len(numbersWith(t, path, "fate == received-unacked")); n != 219 {
		t.Errorf("%d packets arrived and were never acked, expected the 219 of the finding ack-window-slide", n)
	}
}

// TestEventsAndPacketsNameTheSameFrames: `events` and `packets` list the same frames for a fact,
// also where a later packet settled it.
func TestEventsAndPacketsNameTheSameFrames(t *testing.T) {
	for _, name := range []string{"reliable-loss10.client.pcap.gz", "u221_loss10.server.pcapng.gz"} {
		path := "../testdata/pcaps/" + name
		for _, text := range []string{"rel.lost", "rel.received", "rel.acked", "rel.resend"} {
			var lists [2][]string
			for i, command := range []string{"events", "packets"} {
				for line := range strings.Lines(printed(t, command, "-q", "-Y", text, path)) {
					lists[i] = append(lists[i], strings.Fields(line)[0])
				}
				slices.Sort(lists[i])
				lists[i] = slices.Compact(lists[i])
			}
			if !slices.Equal(lists[0], lists[1]) {
				t.Errorf("%s, %s: events names %d frames, packets %d", name, text, len(lists[0]), len(lists[1]))
			}
		}
	}
}

// TestMessageOnItsPackets: a filter about a message finds each packet that carried it.
func TestMessageOnItsPackets(t *testing.T) {
	const path = "../testdata/pcaps/u221_loss10.client.pcap.gz"
	type row struct{ Frames []int }
	want := map[int]bool{}
	for line := range strings.Lines(printed(t, "messages", "-q", "--json", "-Y", "message.sends > 2", path)) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		for _, n := range r.Frames {
			want[n] = true
		}
	}
	got := map[int]bool{}
	out := printed(t, "packets", "-q", "-Y", "message.sends > 2", "-T", "fields", "-e", "frame.number", path)
	for _, word := range strings.Fields(out) {
		n, _ := strconv.Atoi(word)
		got[n] = true
	}
	if len(want) < 5 || !maps.Equal(got, want) {
		t.Errorf("the filter finds the packets %v, expected %v", slices.Sorted(maps.Keys(got)),
			slices.Sorted(maps.Keys(want)))
	}
}

// TestFateNeedsAFile: where a capture is read once, the fate of a packet is not known yet.
func TestFateNeedsAFile(t *testing.T) {
	var out, trouble bytes.Buffer
	const path = "../testdata/pcaps/reliable-loss10.client.pcap.gz"
	code := run(known, []string{"packets", "--live", "-Y", "fate == lost", path},
		app.Streams{In: strings.NewReader(""), Out: &out, Err: &trouble})
	if code != app.ExitFailed || !strings.Contains(trouble.String(), "fate is known only from later packets") {
		t.Errorf("exit %d, %q", code, trouble.String())
	}
}

package truth

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
)

// yojimboScenes are the recorded runs of yojimbo. ackscope gets their keys and no profile, so it
// infers the configuration. The log has the configuration of the run. The search is
// slow, and both taps see nearly the same packets: one capture of each run is enough.
func yojimboScenes(t *testing.T) (list []*scene) {
	dir := t.TempDir()
	paths, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "yojimbo-*.client.pcap.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d captures of yojimbo: %v", len(paths), err)
	}
	for _, path := range paths {
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		if name == "yojimbo-wrong-key" {
			continue // nothing of it can be read
		}
		channels := yojimboChannels(t, name)
		s := &scene{name: filepath.Base(path), path: uncompressed(t, path, dir), recorded: true}
		s.fresh = func() *dissect.Registry { return decrypting(t, name) }
		before := asBefore(s)
		s.check = func(c *ripCapture) []string { return append(before(c), inferredFaults(c, channels)...) }
		list = append(list, s)
	}
	return list
}

// yojimboChannel is what the log of a run says of a channel.
type yojimboChannel struct {
	Type              string `json:"type"`
	MaxMessages       int    `json:"maxMessagesPerPacket"`
	BlockFragmentSize int    `json:"blockFragmentSize"`
	MaxFragments      int    `json:"maxFragmentsPerBlock"`
}

// yojimboChannels returns the channels of a recorded run.
func yojimboChannels(t *testing.T, name string) []yojimboChannel {
	t.Helper()
	for line := range strings.Lines(string(unzip(t, testenv.Capture(t, name+".truth.jsonl.gz")))) {
		var l struct {
			Event, Endpoint string
			Channels        []yojimboChannel
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Event == "config" && l.Endpoint == "server" {
			return l.Channels
		}
	}
	t.Fatalf("%s: the log has no configuration", name)
	return nil
}

// inferredFaults compares each inferred configuration with that of the run. A range has to contain
// the true value.
func inferredFaults(c *ripCapture, channels []yojimboChannel) (faults []string) {
	for _, f := range c.session.Flows() {
		i, ok := f.Facts().Settings.(*yojimbo.Inference)
		if !ok || i == nil {
			continue
		}
		if len(i.Channels) != len(channels) {
			faults = append(faults, fmt.Sprintf("%d channels are inferred, the run has %d", len(i.Channels), len(channels)))
			continue
		}
		for n, got := range i.Channels {
			want := channels[n]
			kind := strings.ReplaceAll(i.Config.Channels[n].Type.String(), "-", "_")
			switch {
			case got.Undecided:
			case kind != want.Type:
				faults = append(faults, fmt.Sprintf("channel %d is inferred to be %s, it is %s", n, kind, want.Type))
			case got.MessagesMost > 0 && (want.MaxMessages < got.MessagesLeast || want.MaxMessages > got.MessagesMost):
				faults = append(faults, fmt.Sprintf("channel %d is inferred to have at most %d to %d messages a packet, it has %d",
					n, got.MessagesLeast, got.MessagesMost, want.MaxMessages))
			case got.Blocks > 0 && got.FragmentsMost > 0 &&
				(want.MaxFragments < got.FragmentsLeast || want.MaxFragments > got.FragmentsMost):
				faults = append(faults, fmt.Sprintf("channel %d is inferred to have at most %d to %d fragments a block, it has %d",
					n, got.FragmentsLeast, got.FragmentsMost, want.MaxFragments))
			}
		}
	}
	return faults
}

// restartScenes are two connections, one after the other, on one pair of addresses. The capture
// misses the first packets of the second one, before either side had received any. So the second
// connection begins at a number of its rate times the gap, such as 150.
func restartScenes(t *testing.T) (list []*scene) {
	dir := t.TempDir()
	for n, x := range []struct {
		rate, delay, tap string
		missed           time.Duration
	}{
		{"10", "80ms", "a", 4 * time.Second},
		{"30", "20ms", "between", 4 * time.Second},
		{"60", "5ms", "b", 4 * time.Second},
		{"60", "200ms", "a", 2500 * time.Millisecond},
		{"128", "20ms", "between", 2500 * time.Millisecond},
		{"128", "20ms", "a", 3500 * time.Millisecond},
	} {
		flags := fmt.Sprintf("--protocol gaffer:reliable --rate %s --delay %s --tap %s --seed %d", x.rate, x.delay, x.tap,
			300+n)
		one := simulated(t, dir, flags+" --duration 7s")
		two := simulated(t, dir, flags+fmt.Sprintf(" --duration 10s --outage 0s,%v", x.missed+500*time.Millisecond))
		late := simulation{two.named("late"), nil}
		first := machine.Instant(-1)
		rewritten(t, late.path, two.path, func(f *capture.Frame) bool {
			if first < 0 {
				first = f.At
			}
			return f.At.Sub(first) >= x.missed
		})
		s := &scene{name: flags + ", again without its first packets", altered: true, registry: registryOf()}
		s.path = one.again(t, late, 4*time.Second).path
		s.check = restartFaults
		list = append(list, s)
	}
	return list
}

// restartFaults returns a sentence where the two connections of a capture are not told as two.
func restartFaults(c *ripCapture) []string {
	flows := 0
	for _, f := range c.session.Flows() {
		if f.Protocol != nil {
			flows++
		}
	}
	if flows != 2 {
		return []string{fmt.Sprintf("%d connections are told, there were two", flows)}
	}
	return nil
}

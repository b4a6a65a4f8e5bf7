package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// clean lists the captures of networks without loss, delay or other trouble, and of correct
// builds: all captures of these names.
var clean = []string{
	"reliable-clean", "plain-be-clean", "plain-le-clean", "crc32-clean", "oldreliable-clean", "yojimbo-clean",
	"article-fragments-clean", "u200_clean", "u210_clean", "u212_clean", "u21d_clean", "u21n_clean", "u221_clean",
	"t200_clean", "t210_clean", "t21d_clean", "t21n_clean", "t221_clean",
}

// finding is what the tests below read of a line of `findings --json`.
type finding struct{ Rule, Side, Severity, Certainty, Message string }

func findingsOf(t *testing.T, args ...string) (list []finding) {
	t.Helper()
	for line := range strings.Lines(output(t, append([]string{"findings", "--json"}, args...)...)) {
		var x finding
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list
}

// TestCleanCapturesHaveNoWarning: no rule of severity warn or error fires in a clean capture.
func TestCleanCapturesHaveNoWarning(t *testing.T) {
	seen := 0
	for _, name := range clean {
		captures, err := filepath.Glob(filepath.Join("..", "testdata", "pcaps", name+".*.pcap*"))
		if err != nil || len(captures) == 0 {
			t.Fatalf("%s: %v, %v", name, captures, err)
		}
		for _, path := range captures {
			seen++
			for _, x := range findingsOf(t, path) {
				if x.Severity != "note" {
					t.Errorf("%s: %+v", path, x)
				}
			}
		}
	}
	if seen < 25 {
		t.Errorf("%d captures, expected 25 at least", seen)
	}
}

// TestCleanRunsHaveNoWarning: nor in a simulated run without loss, at either end.
func TestCleanRunsHaveNoWarning(t *testing.T) {
	for _, protocol := range []string{"gaffer:reliable", "gaffer:article", "riptide:2.1", "riptide:2.0", "srdp"} {
		for _, tap := range []string{"a", "b"} {
			path := filepath.Join(t.TempDir(), "run.pcapng")
			output(t, "simulate", "-q", "--protocol", protocol, "--delay", "30ms", "--jitter", "5ms", "--duration", "20s",
				"--rate", "30", "--tap", tap, "-w", path)
			for _, x := range findingsOf(t, path) {
				if x.Severity != "note" {
					t.Errorf("%s, tap %s: %+v", protocol, tap, x)
				}
			}
		}
	}
}

// TestThresholdsSet: limits decide what is a finding, from a file, from --set, or from both.
func TestThresholdsSet(t *testing.T) {
	path := filepath.Join("..", "testdata", "pcaps", "u221_clean.client.pcap.gz")
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte("resends: 30%\nbandwidth: 500B/s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want map[string]int
	}{
		{nil, nil},
		{[]string{"--set", "resends=30%"}, map[string]int{"resend-share": 2}},
		{[]string{"--thresholds", file}, map[string]int{"resend-share": 2, "bandwidth": 2}},
		{[]string{"--thresholds", file, "--set", "bandwidth=off,resends=47%"}, map[string]int{"resend-share": 1}},
	} {
		got := map[string]int{}
		for _, x := range findingsOf(t, append(c.args, path)...) {
			if x.Severity == "warn" {
				got[x.Rule]++
			}
		}
		for _, rule := range []string{"resend-share", "bandwidth", "steady-loss", "steady-rtt", "stalled"} {
			if got[rule] != c.want[rule] {
				t.Errorf("%v: %d findings %s, expected %d", c.args, got[rule], rule, c.want[rule])
			}
		}
	}
}

// TestThresholdsReadBack: `thresholds` prints a file that --thresholds reads, with the same
// limits.
func TestThresholdsReadBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.yaml")
	want := output(t, "thresholds", "--set", "loss=7%,rtt=80ms,jitter=off,bandwidth=1Mbit/s")
	if !strings.Contains(want, "\nloss: 7%\n") || !strings.Contains(want, "\njitter: off\n") {
		t.Fatalf("--set does not show in\n%s", want)
	}
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := output(t, "thresholds", "--thresholds", file); got != want {
		t.Errorf("reads back as\n%s\nexpected\n%s", got, want)
	}
}

// TestMessagesSentAgain: the messages that resend-share counts are those of the rows of
// `messages`, at a tap at their sender.
func TestMessagesSentAgain(t *testing.T) {
	srdp := filepath.Join(t.TempDir(), "srdp.pcapng")
	output(t, "simulate", "-q", "--protocol", "srdp", "--loss", "10%", "--tap", "a", "--duration", "20s", "-w", srdp)
	private, id, _ := secretsOf(t, "yojimbo-testmsgs-loss10")
	keys := keyFile(t, "servers: [{protocol_id: 0x"+id+", private_key: "+private+"}]\n")
	real := func(name string) string { return filepath.Join("..", "testdata", "pcaps", name) }
	for _, c := range []struct {
		path, side string
		keys       []string
	}{
		{real("u210_loss10.client.pcapng.gz"), "a", nil},
		{real("u200_loss15.server.pcapng.gz"), "b", nil},
		{real("u221_clean.client.pcap.gz"), "a", nil},
		{real("t210_clean.client.pcap.gz"), "a", nil},
		{real("yojimbo-testmsgs-loss10.client.pcap.gz"), "a", []string{"--keys", keys}},
		{srdp, "a", nil},
	} {
		sent, again := 0, 0
		args := append([]string{"messages", "--json", "-Y", "message.side == " + c.side}, c.keys...)
		for line := range strings.Lines(output(t, append(args, c.path)...)) {
			var m struct {
				Mode     string
				Attempts int
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			if m.Mode == "unreliable" || m.Mode == "notify" {
				continue
			}
			if sent++; m.Attempts > 1 {
				again++
			}
		}
		want := fmt.Sprintf(": %d of %d", again, sent)
		got := ""
		for _, x := range findingsOf(t, append(c.keys, "--set", "resends=0%", c.path)...) {
			if x.Rule == "resend-share" && x.Side == c.side {
				got = x.Message
			}
		}
		if again < 5 || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, expected it to end in %q", filepath.Base(c.path), got, want)
		}
	}
}

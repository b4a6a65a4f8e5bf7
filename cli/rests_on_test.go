package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRestsOn holds what the reason for a divergence rests on against faults of which
// that is known. One rule has reasons of several kinds: a number that lies ahead may
// follow some that the capture lacks, one that lies behind cannot.
func TestRestsOn(t *testing.T) {
	for _, c := range []struct {
		protocol, fault, rule, rests string
	}{
		{"gaffer:reliable", "sequence-skipped", "sequence", "absence"},
		{"gaffer:reliable", "sequence-repeated", "sequence", "own"},
		{"gaffer:reliable", "ack-bits-cut", "ack-withdrawn", "own"},
		{"gaffer:reliable", "ack-gaps", "ack-never-arrived", "peer absence"},
		{"gaffer:reliable", "ack-last-not-newest", "ack-omitted", "peer absence"},
		{"riptide:main", "ack-missing", "ack-missing", "peer absence"},
		{"riptide:main", "attempts-ignored", "attempts", "own"},
		{"riptide:main", "resend-early", "resend-early", "peer absence"},
		{"riptide:main", "heartbeat-early", "heartbeat-early", "own"},
		{"srdp", "resend-early", "resend-early", "absence"},
		{"srdp", "resend-changed", "id-reuse", "own"},
		{"srdp", "order-ignored", "order", "own"},
		{"srdp", "ack-byte-order", "ack-mark", "peer"},
		{"srdp", "ack-twice", "ack-unasked", "peer absence"},
	} {
		path := filepath.Join(t.TempDir(), "fault.pcap")
		var scenario []string
		for _, x := range allFaults() {
			if strings.HasPrefix(c.protocol, x.protocol) && x.Name == c.fault {
				scenario = x.Scenario
			}
		}
		args := append([]string{"simulate", "-q", "--fault", c.fault, "--tap", "a", "-w", path}, scenario...)
		for flag, value := range map[string]string{"--protocol": c.protocol, "--duration": "8s", "--loss": "5%"} {
			if !slices.Contains(args, flag) {
				args = append(args, flag, value)
			}
		}
		if _, errs, code := outcome(args...); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, errs)
		}
		text, _, _ := outcome("replay", "--json", "--vantage", "a", path)
		var is struct {
			Rule      string
			RestsOn   []string `json:"rests_on"`
			Absence   bool
			Certainty string
			Severity  string
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, `"side":"a"`) {
				if err := json.Unmarshal([]byte(line), &is); err != nil {
					t.Fatal(err)
				}
			}
		}
		absence := strings.Contains(c.rests, "absence")
		if is.Rule != c.rule || strings.Join(is.RestsOn, " ") != c.rests || is.Absence != absence ||
			is.Certainty != map[bool]string{true: "likely", false: "certain"}[absence] || is.Severity == "" {
			t.Errorf("%s: %+v, expected %s, which rests on %s", c.fault, is, c.rule, c.rests)
		}
	}
}

package cli

import (
	"regexp"
	"strings"
	"testing"
)

// oneOfMany matches a count of one before a noun in the plural.
var oneOfMany = regexp.MustCompile(`(^|[^\d.,:_/-])1 (?:more )?(packets|flows|findings|frames|messages|datagrams|warnings|errors|notes|bursts|` +
	`samples|times|copies|headers|jumps|acks|captures|bytes|files|events|sides|divergences|others|requests|blocks|slices|` +
	`fragments|connections|resends|clients|interfaces|rounds|heartbeats|attempts|ids)\b`)

// Counts agree with their nouns: no output says "1 packets".
func TestPlurals(t *testing.T) {
	checked := 0
	all := allCaptures(t)
	for i, path := range all {
		if i%4 != 0 && !strings.Contains(path, "loss") && !strings.Contains(path, "timeout") {
			continue
		}
		for _, args := range [][]string{
			{"findings"},
			{"findings", "--alert", "note"},
			{"flows"},
			{"autopsy"},
			{"state", "--flow", "1"},
			{"ledger"},
		} {
			if i%4 != 0 && len(args) > 1 || i%8 != 0 && args[0] == "ledger" {
				continue
			}
			out, complaint, _ := runText(append(args, path)...)
			checked++
			for line := range strings.Lines(out + complaint) {
				if m := oneOfMany.FindString(line); m != "" {
					t.Errorf("%q of %s says %q: %s", args, path, m, line)
				}
			}
		}
	}
	var rules strings.Builder
	for _, p := range known {
		for _, r := range p.Rules {
			if r.Say != nil {
				rules.WriteString(r.ID + " " + r.Say(1, [3]float64{1, 1, 1}) + "\n")
			}
		}
	}
	for line := range strings.Lines(rules.String()) {
		if m := oneOfMany.FindString(line); m != "" {
			t.Errorf("a rule says %q: %s", m, line)
		}
	}
	if checked < 100 {
		t.Errorf("%d outputs: expected more to check", checked)
	}
}

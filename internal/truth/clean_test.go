package truth

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// cleanRuns are the runs in which nothing is wrong: the network loses nothing, and the libraries and
// the game do as they should. The value says whether the headline has a loss and a round trip. In
// the others no packet is acked in the clear.
var cleanRuns = map[string]bool{
	"article-fragments-clean.client": false,
	"article-fragments-clean.server": false,
	"crc32-clean.client":             true,
	"crc32-clean.server":             true,
	"oldreliable-clean.client":       true,
	"oldreliable-clean.server":       true,
	"plain-be-clean.client":          true,
	"plain-be-clean.server":          true,
	"plain-le-clean.client":          true,
	"plain-le-clean.server":          true,
	"realbuilds/clean1.client":       true,
	"realbuilds/clean1.server":       true,
	"reliable-clean.client":          true,
	"reliable-clean.server":          true,
	"reliable-event-update.client":   true,
	"reliable-event-update.server":   true,
	"t200_clean.client":              true,
	"t210_clean.client":              true,
	"t21d_clean.client":              true,
	"t21n_clean.client":              true,
	"t221_clean.client":              true,
	"yojimbo-clean.client":           false,
	"yojimbo-clean.server":           false,
}

// TestCleanCaptures: a capture in which nothing is wrong has no warning and no error. The headline
// says so, with the loss of both ways and the round trip.
func TestCleanCaptures(t *testing.T) {
	said := regexp.MustCompile(`^(No rule fired|No warning and no error; [0-9]+ notes?)\. ` +
		`Loss A→B (between )?0\.0%.*, B→A (between )?0\.0%.*; RTT [0-9]+ ms`)
	for name, figures := range cleanRuns {
		capture := testenv.Capture(t, name+".pcap.gz")
		notes := 0
		for line := range bytes.Lines(testenv.Output(t, testenv.Ackscope(t), "findings", "--json", capture)) {
			var f struct{ Rule, Severity string }
			if err := json.Unmarshal(line, &f); err != nil {
				t.Fatal(err)
			}
			if notes++; f.Severity != "note" {
				t.Errorf("%s: %s %s", name, f.Severity, f.Rule)
			}
		}
		text := string(testenv.Output(t, testenv.Ackscope(t), "overview", capture))
		_, rest, _ := strings.Cut(text, "\n\n")
		sentence, _, _ := strings.Cut(rest, "\n\n")
		sentence = strings.ReplaceAll(sentence, "\n", " ")
		switch fired := !strings.HasPrefix(sentence, "No rule fired. "); {
		case fired != (notes > 0):
			t.Errorf("%s: %d notes, and the headline is %q", name, notes, sentence)
		case figures && !said.MatchString(sentence):
			t.Errorf("%s: the headline has no figures: %q", name, sentence)
		}
	}
}

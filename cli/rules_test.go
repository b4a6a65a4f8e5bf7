package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
)

var kebab = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// TestRulesAreExplained holds that every rule of a finding and of a divergence, of every
// protocol, tells what it means. What is new, the divergences, has an example each and
// short sentences.
func TestRulesAreExplained(t *testing.T) {
	a := &app.App{Registry: protocols()}
	rules := a.ExplainedRules()
	findings, divergences := 0, 0
	seen := map[string]bool{}
	for _, r := range rules {
		name := strings.TrimSpace(r.Protocol + " " + r.Kind() + " " + r.ID)
		if seen[name] {
			t.Errorf("%s stands twice", name)
		}
		seen[name] = true
		for _, fault := range faultsOfRule(r) {
			t.Errorf("%s: %s", name, fault)
		}
		if r.Divergence {
			divergences++
		} else {
			findings++
		}
	}
	if findings < 80 || divergences < 75 {
		t.Errorf("%d rules of findings and %d of divergences, expected 80 and 75 at least", findings, divergences)
	}
}

// longestSentence is how many words a sentence of an explanation may have.
const longestSentence = 25

func faultsOfRule(r app.ExplainedRule) (faults []string) {
	if !kebab.MatchString(r.ID) {
		faults = append(faults, "its ID is not in kebab case")
	}
	if r.Summary == "" || strings.ContainsAny(r.Summary, "\n") || strings.HasSuffix(r.Summary, ".") {
		faults = append(faults, "expected a summary of one line without a full stop")
	}
	if len(r.Explain) < 100 {
		faults = append(faults, "expected an explanation of 100 characters or more")
	}
	if !r.Divergence {
		return faults
	}
	if len(strings.Split(r.Explain, "\n\n")) != 3 {
		faults = append(faults, "expected three paragraphs: what it means, how it is told, what to do")
	}
	if !strings.Contains(r.Explain, "For example,") {
		faults = append(faults, "expected an example in its explanation")
	}
	for sentence := range strings.FieldsFuncSeq(r.Explain, func(c rune) bool { return c == '\n' }) {
		for _, s := range regexp.MustCompile(`[.:;?!] `).Split(sentence, -1) {
			if n := len(strings.Fields(s)); n > longestSentence {
				faults = append(faults, "a sentence has more than 25 words: "+s)
			}
		}
	}
	return faults
}

// TestRuleFaultsAreTold plants rules that lack something.
func TestRuleFaultsAreTold(t *testing.T) {
	a := &app.App{Registry: protocols()}
	rules := a.ExplainedRules()
	whole := rules[len(rules)-1]
	if !whole.Divergence || len(faultsOfRule(whole)) > 0 {
		t.Fatalf("%s: %v", whole.ID, faultsOfRule(whole))
	}
	for _, spoil := range []func(r *app.ExplainedRule){
		func(r *app.ExplainedRule) { r.ID = "Ack" },
		func(r *app.ExplainedRule) { r.Summary = "" },
		func(r *app.ExplainedRule) { r.Summary += "." },
		func(r *app.ExplainedRule) { r.Explain, r.Divergence = "", false },
		func(r *app.ExplainedRule) { r.Explain = strings.ReplaceAll(r.Explain, "For example,", "So") },
		func(r *app.ExplainedRule) { r.Explain = strings.ReplaceAll(r.Explain, "\n\n", "\n") },
		func(r *app.ExplainedRule) { r.Explain = r.Explain + strings.Repeat(" word", longestSentence+1) },
	} {
		copied, r := *whole.Rule, whole
		r.Rule = &copied
		if spoil(&r); len(faultsOfRule(r)) != 1 {
			t.Errorf("%s: %q, %q: %d faults are told, expected 1", r.ID, r.Summary, r.Explain, len(faultsOfRule(r)))
		}
	}
}

package overview

import (
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"match.pcapng":         "match.pcapng",
		"a/b-c_1.2+3=4,5@6%:7": "a/b-c_1.2+3=4,5@6%:7",
		"":                     "''",
		"two words":            "'two words'",
		"it's":                 `'it'\''s'`,
		"$(reboot)":            "'$(reboot)'",
		"a;b|c&d>e":            "'a;b|c&d>e'",
		"~root":                "'~root'",
		"flow == 1":            "'flow == 1'",
		"größe.pcap":           "'größe.pcap'",
		"a\x1b[2Jb'":           `$'a\x1b[2Jb\''`,
		"line\nbreak\\":        `$'line\x0abreak\\'`,
		"\xff":                 `$'\xff'`,
		"\u202egnp.pcap":       `$'\xe2\x80\xaegnp.pcap'`,
	} {
		if got := Quote(word); got != want {
			t.Errorf("Quote(%q) = %s, expected %s", word, got, want)
		}
	}
}

// TestLossText checks that no figure says more than the capture does.
func TestLossText(t *testing.T) {
	bounds := func(sent, least, most uint64) machine.LossBounds {
		return machine.LossBounds{Sent: sent, Least: least, Most: most, Certainty: machine.Certain}
	}
	for _, x := range []struct {
		of   analyze.Network
		want string
	}{
		{analyze.Network{Share: -1}, "?"},
		{analyze.Network{Share: 0, Certain: machine.Certain, Tells: true}, "0.0%"},
		{analyze.Network{Share: 0.093, Certain: machine.Likely}, "9.3% (likely)"},
		{analyze.Network{Share: 0.093, Certain: machine.Likely, Round: true}, "9.3% there and back"},
		{analyze.Network{Share: -1, Loss: bounds(100, 3, 11)}, "between 3.0% and 11.0%"},
		{
			analyze.Network{Share: 0.093, Certain: machine.Likely, Loss: bounds(100, 3, 11)},
			"between 3.0% and 11.0% (likely 9.3%)",
		},
		{
			analyze.Network{Share: 0.093, Certain: machine.Possible, Loss: bounds(100, 3, 11)},
			"between 3.0% and 11.0% (possible 9.3%)",
		},
		{analyze.Network{Share: 0.093, Loss: bounds(100, 3, 11), Round: true}, "between 3.0% and 11.0%"},
		{analyze.Network{Share: 0.5, Loss: bounds(100, 3, 11)}, "between 3.0% and 11.0%"},
		{analyze.Network{Share: -1, Loss: bounds(10000, 300, 301)}, "3.0%"},
	} {
		if got := LossText(&x.of); got != x.want {
			t.Errorf("LossText(%+v) = %q, expected %q", x.of, got, x.want)
		}
	}
}

// TestTroubleOrder checks which trouble comes first: it becomes the headline.
func TestTroubleOrder(t *testing.T) {
	rule := func(s machine.Severity, o machine.Origin) *machine.Rule {
		return &machine.Rule{ID: s.String() + "-" + o.String(), Severity: s, Origin: o, Summary: "x"}
	}
	list := []Trouble{
		{Rule: rule(machine.Error, machine.OriginCode)},
		{Rule: rule(machine.Warn, machine.OriginNetwork)},
		{Rule: rule(machine.Warn, machine.OriginCode)},
		{Rule: rule(machine.Warn, machine.OriginLibrary)},
		{Rule: rule(machine.Warn, machine.OriginCapture)},
	}
	for i := range list {
		list[i].Severity, list[i].Origin = list[i].Rule.Severity, list[i].Rule.Cause()
		if i > 0 && (list[i-1].Severity < list[i].Severity ||
			list[i-1].Severity == list[i].Severity && list[i-1].order() >= list[i].order()) {
			t.Errorf("%s does not come before %s", list[i-1].Rule, list[i].Rule)
		}
	}
}

// TestNextOfStandardInput checks that no command reads standard input, which was read already,
// and that a name that looks like a flag is none.
func TestNextOfStandardInput(t *testing.T) {
	n := next{files: []string{"-"}}
	n.add("", "findings")
	n.files = []string{"-rf.pcap"}
	n.add("", "findings")
	for i, want := range []string{"ackscope findings FILE", "ackscope findings ./-rf.pcap"} {
		if got := n.list[i].String(); got != want {
			t.Errorf("got %q, expected %q", got, want)
		}
	}
	if strings.Contains(n.list[0].String(), " - ") {
		t.Error("it reads standard input")
	}
}

// TestLossesOfOneWay: a headline says what it knows of one way, and that the other is unknown.
func TestLossesOfOneWay(t *testing.T) {
	known, open := analyze.Network{Share: 0.269, Certain: machine.Certain, Tells: true}, analyze.Network{Share: -1}
	for want, sides := range map[string][2]analyze.Network{
		"A→B loses 26.9%, B→A 26.9%":                  {known, known},
		"A→B loses 26.9%; the loss of B→A is unknown": {known, open},
		"B→A loses 26.9%; the loss of A→B is unknown": {open, known},
		"": {open, open},
	} {
		f := &Flow{Sides: [2]Side{{Network: sides[0]}, {Network: sides[1]}}, lossWorth: 0.03}
		if got := f.losses(); got != want {
			t.Errorf("got %q, expected %q", got, want)
		}
		if f.lossWorth = 0.27; f.losses() != "" {
			t.Errorf("the limit is 27 %%: %q", f.losses())
		}
	}
}

package replay

import (
	"strings"
	"testing"
)

const (
	lineA = "flow 1 a 10.0.0.1:30000 reliable@>=1.3 conforms tap=a packets=300"
	lineB = "flow 1 b 10.0.0.2:40000 reliable@>=1.3 consistent tap=a packets=270 undecided=270"
	lineD = `flow 1 a 10.0.0.1:30000 reliable@>=1.3 diverges tap=a packets=300 frame=99 rule=ack-never-arrived field=gaffer.ack_bits expected="0x1 of 2" got="0x3 = \"x\""`
	same  = "capture bytes=100 sha256=" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	other = "capture bytes=100 sha256=" + "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

func readBaseline(t *testing.T, lines ...string) *Baseline {
	t.Helper()
	text := baselineHead + "\n" + strings.Join(lines, "\n") + "\n"
	b, err := ReadBaseline(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var again strings.Builder
	if _, err := b.WriteTo(&again); err != nil || again.String() != text {
		t.Errorf("written again (%v):\n%s\nexpected\n%s", err, again.String(), text)
	}
	return b
}

// TestDrift: what the words of a drift say of each kind of change.
func TestDrift(t *testing.T) {
	moved := strings.NewReplacer("10.0.0.1", "10.0.0.9", "packets=300", "packets=299").Replace(lineA)
	for _, c := range []struct {
		name     string
		was, now []string
		says     []string
	}{
		{"nothing", []string{same, lineA, lineB}, []string{same, lineA, lineB}, nil},
		{"a verdict", []string{same, lineA}, []string{same, lineD}, []string{
			`flow 1 a: conforms -> diverges, frame none -> 99, rule none -> ack-never-arrived, field none -> gaffer.ack_bits, expected none -> "0x1 of 2", got none -> "0x3 = \"x\""`,
		}},
		{
			"figures of the same capture",
			[]string{same, lineA},
			[]string{same, moved},
			[]string{"flow 1 a: 10.0.0.1:30000 -> 10.0.0.9:30000, packets 300 -> 299"},
		},
		{
			"figures of a baseline that names no capture",
			[]string{lineA},
			[]string{same, moved},
			[]string{"flow 1 a: 10.0.0.1:30000 -> 10.0.0.9:30000, packets 300 -> 299"},
		},
		{"figures of another capture", []string{same, lineA}, []string{other, moved}, nil},
		{"a verdict of another capture", []string{same, lineA}, []string{other, lineD}, []string{
			"flow 1 a: conforms -> diverges, rule none -> ack-never-arrived, field none -> gaffer.ack_bits",
		}},
		{
			"a flow that is gone, and a new one",
			[]string{same, lineA},
			[]string{same, lineB},
			[]string{"flow 1 a: is not there any more", "flow 1 b: is not in the baseline"},
		},
	} {
		var says []string
		for _, d := range readBaseline(t, c.was...).Drift(readBaseline(t, c.now...)) {
			says = append(says, d.Flow+": "+d.Says)
		}
		if strings.Join(says, "\n") != strings.Join(c.says, "\n") {
			t.Errorf("%s:\n%s\nexpected\n%s", c.name, strings.Join(says, "\n"), strings.Join(c.says, "\n"))
		}
	}
}

// TestReadBaseline: what is no baseline is refused with its line.
func TestReadBaseline(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"flow 1 a 10.0.0.1:30000 reliable@>=1.3", "line 1: expected `flow N a|b"},
		{lineA + "\nflow 0 a x y conforms", "line 2: expected `flow N a|b"},
		{lineA + "\nflow 1 c x y conforms", "line 2: expected `flow N a|b"},
		{lineA + "\nflow 2 a x y fine", "line 2: expected `flow N a|b"},
		{lineA + "\n" + lineA, "line 2: expected one line for each flow and side, found a second for flow 1 a"},
		{"# x\ncapture sha256=12", "line 2: expected `capture bytes=N sha256=DIGITS`"},
		{"<<<<<<< HEAD\n", "line 1: expected `flow"},
		{lineA + " got=\"a\"b=1", "line 1: expected `flow"},
		{lineA + " nonsense", "line 1: expected `flow"},
	} {
		if _, err := ReadBaseline(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, expected %q", c.text, err, c.says)
		}
	}
}

package overview

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Sentence names the worst trouble and where its cause most likely lies, with figures. It is
// the verdict on a capture: "The trouble is in the network: A→B loses 9.3%, B→A 9.8%."
func (c *Capture) Sentence() string {
	if len(c.Flows) == 0 {
		return "No flow of a protocol that ackscope knows."
	}
	t, f := c.worst()
	if t == nil {
		return c.quiet()
	}
	text := f.headline(t)
	if len(c.Flows)+c.More > 1 {
		between := ": "
		if strings.HasPrefix(text, name(t.Side)+": ") {
			between = ", "
		}
		text = fmt.Sprintf("Flow %d%s%s", f.ID, between, text)
		if c.Troubled > 1 {
			text += fmt.Sprintf(" %s of %s have trouble.", show.Grouped(c.Troubled), show.Plural(len(c.Flows)+c.More, "flow"))
		}
	}
	if t.Origin == machine.OriginNetwork && c.Troubled == 1 && f.losses() != "" {
		text += f.cleared()
	}
	return text
}

// quiet describes a capture without warnings and errors. Something may still be wrong.
func (c *Capture) quiet() string {
	notes := c.notes()
	if notes == 0 {
		return "No rule fired. " + c.health.String() + "."
	}
	return "No warning and no error; " + show.Plural(notes, "note") + ". " + c.health.String() + "."
}

// notes counts the findings of severity note.
func (c *Capture) notes() (n int) {
	for _, f := range c.Flows {
		n += f.Notes
	}
	return n
}

// headline describes a trouble, and where its cause most likely lies.
func (f *Flow) headline(t *Trouble) string {
	if t.inHost() {
		return "The trouble is in the host of " + name(t.Host.Side) + ": " + t.Host.Text + " (" +
			t.Host.Certainty.String() + ")."
	}
	if t.Origin == machine.OriginNetwork {
		if loss := f.losses(); loss != "" {
			return "The trouble is in the network: " + loss + "."
		}
	}
	if t.Failed {
		return "No connection came about: " + t.Text
	}
	if t.Rule == nil {
		return "The connection broke off: " + t.Text
	}
	side := name(t.Side)
	if t.Origin == machine.OriginCode && t.Severity == machine.Error {
		sure := ""
		if t.Certainty != machine.Certain {
			sure = hedge(t.Certainty) + " "
		}
		return "The code of " + side + " is " + sure + "at fault: " + t.what() + "."
	}
	text := side + ": " + t.what() + ". The cause is most likely "
	switch t.Origin {
	case machine.OriginNetwork:
		text += "the network"
	case machine.OriginCode:
		text += "the code of " + side
	case machine.OriginCapture:
		text += "how the capture was taken"
	default:
		text += "the library of " + side + ", or how the game uses it"
	}
	return text + "."
}

// hedge is the adverb of a certainty below certain.
func hedge(c machine.Certainty) string {
	if c == machine.Likely {
		return "likely"
	}
	return "possibly"
}

// what describes the trouble in words, with its first frame. For example: "a message was acked
// and never delivered (57 messages, likely, first in frame 2605)".
func (t *Trouble) what() string {
	text, notes := strings.TrimSuffix(t.Text, "."), ""
	if t.Divergence == nil && t.Rule.Say != nil {
		text, notes = strings.TrimSuffix(t.Rule.Summary, "."), text+", "
	}
	if t.Certainty != machine.Certain && t.Severity != machine.Error {
		notes += t.Certainty.String() + ", "
	}
	return text + fmt.Sprintf(" (%sfirst in frame %d)", notes, t.Frame.Frame())
}

// losses names the loss of both directions, if one of them is worth it: "A→B loses 9.3%, B→A
// 9.8%".
func (f *Flow) losses() string {
	worth := false
	for i := range f.Sides {
		worth = worth || lossOf(&f.Sides[i].Network) >= f.lossWorth
	}
	if !worth {
		return ""
	}
	a, b := LossText(&f.Sides[0].Network), LossText(&f.Sides[1].Network)
	switch unknown {
	case a:
		return Way(machine.B) + " loses " + b + "; the loss of " + Way(machine.A) + " is unknown"
	case b:
		return Way(machine.A) + " loses " + a + "; the loss of " + Way(machine.B) + " is unknown"
	}
	return Way(machine.A) + " loses " + a + ", " + Way(machine.B) + " " + b
}

// cleared says what speaks for the code of both sides, where nothing speaks against it.
func (f *Flow) cleared() string {
	conforms := true
	for i := range f.Sides {
		r := f.Sides[i].Result
		if r == nil || r.Divergence != nil || r.Compared == 0 {
			return ""
		}
		conforms = conforms && r.Undecided == 0
	}
	for i := range f.Troubles {
		if f.Troubles[i].Origin == machine.OriginCode {
			return ""
		}
	}
	if conforms {
		return " The code of both sides does what it should."
	}
	return " Nothing speaks against the code of either side."
}

// opinion describes what replay found of a side.
func opinion(r *Verdict) string {
	side := name(r.Side)
	switch {
	case r.Divergence != nil:
		return fmt.Sprintf("%s contradicts %s in frame %d", side, r.Behaviour, r.Divergence.Frame.Frame())
	case r.Compared == 0:
		return side + " sent nothing that can be compared with a reference"
	case r.Undecided == 0:
		return fmt.Sprintf("%s behaves as %s in %s", side, r.Behaviour, allOf(r.Compared))
	}
	return fmt.Sprintf("%s does not contradict %s; the capture leaves open %s of its %s", side, r.Behaviour,
		show.Grouped(r.Undecided), show.Plural(r.Compared, "packet"))
}

// allOf formats a count of packets of which something holds for all.
func allOf(n uint64) string {
	if n == 1 {
		return "its packet"
	}
	return "all of its " + show.Plural(n, "packet")
}

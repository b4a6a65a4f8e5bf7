package cause

import (
	"fmt"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Sentence names the cause that concerns most flows: "37 flows lose 5.1 to 9.0 %, 35 of them
// in 203.0.113.0/24: their path (likely)." It is empty if too few flows were compared.
func (r *Report) Sentence() string {
	if list := r.Sentences(); len(list) > 0 {
		return list[0]
	}
	return ""
}

// sentencesMost is how many causes are told.
const sentencesMost = 3

// Sentences names the causes, at most three, the one that concerns most flows first. Without a
// cause it says so. It is empty if too few flows were compared.
func (r *Report) Sentences() (list []string) {
	if !r.Enough() {
		return nil
	}
	for i := range r.Verdicts[:min(len(r.Verdicts), sentencesMost)] {
		list = append(list, "Common cause: "+r.Verdicts[i].Sentence())
	}
	if len(list) == 0 {
		list = append(list, "No common cause: the troubles of "+show.Plural(r.Flows, "flow")+
			" have no more in common than chance explains.")
	}
	if r.More > 0 {
		list = append(list, "Not compared: "+show.Plural(r.More, "further flow")+".")
	}
	return list
}

// Sentence says what happened to which flows, and where the cause lies.
func (v *Verdict) Sentence() string {
	where := v.where()
	if v.Also != "" {
		where += fmt.Sprintf(", or what else is common to %s", v.Also)
	}
	return fmt.Sprintf("%s: %s (%s).", v.what(), where, v.Certainty)
}

// what says what happened: "11 stalls, each of up to 200 of 200 flows within 8 ms".
func (v *Verdict) what() string {
	if v.Trouble == Loss {
		return v.losses()
	}
	text := show.Plural(v.Moments, "stall")
	longest := ", the longest " + millis(v.Longest)
	if v.Trouble == Rise {
		text, longest = show.Plural(v.Moments, "rise")+" of the round trip", ", the greatest by "+millis(v.Longest)
	}
	if v.Moments == 1 {
		longest = " of " + millis(v.Longest)
		if v.Trouble == Rise {
			longest = " by " + millis(v.Longest)
		}
	}
	text += longest
	if v.Kind == Player {
		return text + fmt.Sprintf(", in 1 flow, number %d", v.Flow)
	}
	each := ""
	if v.Moments > 1 {
		each = "each "
	}
	text += fmt.Sprintf(", %sin up to %s of %s", each, show.Grouped(v.In), show.Plural(v.Of, "flow"))
	if v.Moments == 1 {
		text = strings.Replace(text, "in up to ", "in ", 1)
	}
	return text + v.of() + " within " + millis(v.Within)
}

// of names the group, if it is not the server or all.
func (v *Verdict) of() string {
	switch v.Kind {
	case Server, Prefix:
		return " of " + v.Group
	case Version:
		return " of version " + v.Group
	case Interface:
		return " of interface " + v.Group
	}
	return ""
}

func (v *Verdict) losses() string {
	span := percent(v.Least)
	if most := percent(v.Most); most != span {
		span += " to " + most
	}
	if v.Kind == Player {
		return fmt.Sprintf("Flow %d loses %s %%%s, and the others %s %%", v.Flow, span, v.direction(), percent(v.Usual))
	}
	in := fmt.Sprintf("%s of them%s", show.Grouped(v.In), v.of())
	if v.In == v.Flows {
		in = "all" + v.of()
	}
	return fmt.Sprintf("%s lose %s %%%s, %s; the others lose %s %%", show.Plural(v.Flows, "flow"), span, v.direction(), in,
		percent(v.Usual))
}

// direction says in which direction packets are lost.
func (v *Verdict) direction() string {
	switch {
	case v.Down && v.Up:
		return " both ways"
	case v.Down:
		return " from the server"
	}
	return " to the server"
}

// where says where the cause lies.
func (v *Verdict) where() string {
	switch v.Kind {
	case Server:
		switch {
		case v.Trouble != Stall:
			return "the server or its link"
		case v.Down && !v.Up && v.AtServer:
			return "the server process, since packets to it went on"
		case v.Down && !v.Up:
			return "the server process or the way from it"
		case v.Up && !v.Down:
			return "the way to the server"
		}
		return "the server's link, or the machine that captured"
	case Prefix:
		return "their path"
	case Version:
		return "that version of the library or game"
	case Interface:
		return "that interface or its network"
	case Player:
		return "this player"
	case All:
		return "the machine that captured, or what all servers share"
	}
	return "no group of them, so the time is all that they have in common"
}

// millis formats a time in milliseconds.
func millis(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", machine.Milliseconds(d))
}

func percent(share float64) string { return fmt.Sprintf("%.1f", 100*share) }

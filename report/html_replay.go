package report

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/show"
)

// htmlReplay is what the replay of a side says.
type htmlReplay struct {
	Who, Behaviour, Verdict, Note string
	Divergence                    *machine.Divergence
}

func replayOf(x *replay.Result) htmlReplay {
	h := htmlReplay{Who: who(x.Flow, x.Side), Behaviour: x.Behaviour, Verdict: x.Verdict(), Divergence: x.Divergence}
	switch {
	case x.Divergence != nil:
		d := x.Divergence
		h.Note = fmt.Sprintf("frame %d, %s: %s expected, %s found. %s", d.Ref.Frame(), d.Field, d.Expected, d.Got, d.Because)
	case x.Undecided > 0:
		h.Note = fmt.Sprintf("nothing contradicts it; %s of %s could not be decided from here", show.Grouped(x.Undecided),
			show.Plural(x.Compared, "packet"))
	default:
		h.Note = "all of its " + show.Plural(x.Compared, "packet") + " are as the reference would have sent them"
	}
	return h
}

package riptide

import (
	"fmt"
	"strings"
	"time"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/machine"
	state "github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// story describes how the connection ended, in sentences.
func (x *flowEnd) story(how string) []string {
	f := x.flow
	name := func(s machine.Side) string { return fmt.Sprintf("%s (%v)", strings.ToUpper(s.String()), f.Addr(s)) }
	switch how {
	case "goodbye":
		e := &x.endings[len(x.endings)-1]
		for i := range x.endings {
			if x.endings[i].Kind == state.EventGoodbye {
				e = &x.endings[i]
				break
			}
		}
		reason := riptide.EndReason(f.Config(), e)
		if e.Sequence == wire.UnpackedStop {
			reason += "; its clients report reason 80"
		}
		return []string{
			fmt.Sprintf("%s ended it in frame %d and said so: %s.", name(e.Side), e.Ref.Frame(), reason),
			"A goodbye is sent once and not acked: had it been lost, the other side would have known only by its timeout.",
		}
	case "rejected":
		e := &x.endings[0]
		return []string{fmt.Sprintf("%s refused the client in frame %d: %s.", name(e.Side), e.Ref.Frame(),
			riptide.EndReason(f.Config(), e))}
	case "unanswered":
		text := fmt.Sprintf("%s asked and never had an answer", name(machine.A))
		if why := app.Undelivered(f, machine.A); why != "" {
			text += ": " + why
		}
		return []string{text + "."}
	}
	var out []string
	gaveUp := false
	for _, side := range []machine.Side{machine.A, machine.B} {
		e := &x.over[side]
		if e.Ref == 0 {
			continue
		}
		gaveUp = true
		reason := riptide.EndReason(f.Config(), e)
		if e.Sequence == state.ReasonTimedOut {
			out = append(out, fmt.Sprintf("%s gave up (%s, %s): nothing that keeps a connection alive had reached it for 5 s%s.",
				name(side), reason, e.Certainty, x.heard(side)))
			continue
		}
		out = append(out, fmt.Sprintf("%s ended it (%s, %s) and said so to nobody: %s.", name(side), reason, e.Certainty,
			x.because(side)))
	}
	quiet := x.quiet()
	if !gaveUp {
		gap := x.last[quiet.Other()].at.Sub(x.last[quiet].at)
		out = append(out, fmt.Sprintf("%s fell silent first, without a goodbye; %s went on for %v.", name(quiet),
			name(quiet.Other()), gap.Round(time.Millisecond)))
		if limited, limits := x.limit(); limits {
			out = append(out,
				fmt.Sprintf("%s had reached a limit of the library's quality rules: with default settings the library then ends "+
					"the connection (PoorConnection) and says nothing.", name(limited)))
		} else if x.found(state.PortThrows, quiet) != nil {
			out = append(out, "No limit was reached that the capture shows. It is Pytide, and an Ack made it throw: its "+
				"update thread ends with that, and nothing is sent any more.")
		} else {
			out = append(out, "No limit was reached that the capture shows: it was killed, or lost its network.")
		}
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		switch other := &x.over[side.Other()]; {
		case x.over[side].Ref != 0:
		case other.Ref != 0 && other.Sequence == state.ReasonTimedOut:
			out = append(out,
				fmt.Sprintf("%s had fallen silent before: it was killed, lost its network, or had ended the connection itself "+
					"without a word.", name(side)))
		case !gaveUp && side == quiet:
		case x.behaviour(side).NoTimeout:
			out = append(out,
				fmt.Sprintf("%s is Pytide, whose timeout never strikes: it goes on as if nothing had happened.", name(side)))
		default:
			out = append(out,
				fmt.Sprintf("%s can have known only by its own timeout, 5 to 6 s after the last heartbeat that reached it%s.",
					name(side), x.heard(side)))
		}
	}
	return out
}

// heard names the last heartbeat that reached a side, as far as the tap shows. It returns "" for
// none.
func (x *flowEnd) heard(side machine.Side) string {
	if b := &x.beat[side.Other()]; b.at != 0 {
		return fmt.Sprintf(" (frame %d, %s)", b.ref.Frame(), b.at.Time().Format("15:04:05.000"))
	}
	return ""
}

// because returns the message of the finding that explains why a side ended the connection by
// itself.
func (x *flowEnd) because(side machine.Side) string {
	why := "a limit of its quality rules was reached"
	if found := x.found(state.PoorEnd, side); found != nil {
		why = found.Message()
	}
	if x.found(state.MergedSequences, side) != nil {
		why += " of the id that it waited for; on the wire messages stood under ids of other connections, ORed into theirs " +
			"(the fault of 2.1.0)"
	}
	return why
}

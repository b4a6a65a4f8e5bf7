package messages

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// ResendRule is the resend policy that a side is held to: the one that its profile sets,
// or the one that its own packets show.
type ResendRule struct {
	Set   wire.Resend      // none set: Found decides
	Found *ResendInference // nil if nothing was inferred
}

// NewResendRules returns the rules of both sides of a flow. Settings is what an earlier run over
// the flow learned (machine.Facts.Settings).
func NewResendRules(s *wire.MessageSection, settings any) (rules [2]ResendRule) {
	found, _ := settings.(*ResendInferences)
	for i := range rules {
		rules[i].Set = s.Resend
		if found != nil {
			rules[i].Found = found[i]
		}
	}
	return rules
}

// Wait returns the least and the most time that the policy lets pass after a message's
// send number sends, at from. The message has waited up to now. The jitter of the tap, 1 ms,
// is taken off the least. If the most is not known, it is 0. If no policy is known well
// enough, ok is false.
func (r *ResendRule) Wait(sends int, from, now machine.Instant) (least, most time.Duration, ok bool) {
	switch p := r.Found; {
	case !r.Set.IsSet():
		if p == nil {
			return 0, 0, false
		}
		return p.wait(sends, from, now)
	case r.Set.Policy != wire.ResendRTT:
		most = r.Set.Wait(sends, 0)
		return most - gaffer.TapJitter, most, true
	case p == nil:
		return 0, 0, false
	default:
		shortest, longest, known := p.rtts.between(from, now)
		least, most = r.Set.Wait(sends, shortest), r.Set.Wait(sends, longest)
		if !known {
			least, most = min(least, r.Set.After), max(most, r.Set.After)
		}
		return least - gaffer.TapJitter - time.Duration(nearRTTSlack*float64(least)), most, true
	}
}

// Rule returns the resend policy of the lane's sender, as far as it is known.
func (c *Lane) Rule() ResendRule {
	r := c.Resend
	if c.Evidence != nil {
		r.Found = c.Evidence.Infer()
	}
	return r
}

// Policy returns the policy that is set, or the one that was inferred. It is the zero
// value if none is known.
func (r *ResendRule) Policy() wire.Resend {
	if r.Set.IsSet() {
		return r.Set
	}
	return r.Found.Named()
}

// Inferred says what was inferred: "100ms: 99.0 to 101.0 ms, 124 of 126 repeats agree". It
// is empty if a policy is set, or if none was found.
func (r *ResendRule) Inferred() string {
	switch p := r.Found; {
	case r.Set.IsSet() || p == nil:
		return ""
	case !p.tells() && p.Floor > 0:
		return fmt.Sprintf("most messages wait more than %s ms", milliseconds(p.Floor))
	case len(p.Forms) == 0:
		return ""
	}
	f := &r.Found.Forms[0]
	return fmt.Sprintf("%v: %s, %s", f.Resend, f.Bounds(), f.Why())
}

// floor says how long most messages wait: "more than 82.0 ms". It is empty if that is
// unknown.
func (p *ResendInference) floor() string {
	if p == nil || p.Floor == 0 {
		return ""
	}
	return fmt.Sprintf("more than %s ms", milliseconds(p.Floor))
}

// Table draws the policy, what it rests on, and what else agrees with the packets.
func (r *ResendRule) Table() machine.Table {
	t := machine.Table{Name: "resend policy", Columns: []string{"policy", "bounds", "by", "certainty"}}
	add := func(cells ...string) { t.Rows = append(t.Rows, cells) }
	switch p := r.Found; {
	case r.Set.IsSet():
		add(r.Set.String(), "", "the profile", machine.Certain.String())
	case p == nil || p.Repeats == 0:
		add("unknown", p.floor(), "no repeat was measured", machine.Unknown.String())
	case len(p.Forms) == 0:
		add("unknown", p.floor(), "the repeats agree with no policy", machine.Unknown.String())
	default:
		for i := range p.Forms {
			f := &p.Forms[i]
			sure := p.Certainty()
			if i > 0 {
				sure = machine.Possible
			}
			add(f.Resend.String(), f.Bounds(), f.Why(), sure.String())
		}
	}
	return t
}

package article

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// NewJudge returns the judge of such a flow, whose sides have the named behaviours. Of facts
// it uses where the tap stands. It fails for an unknown behaviour, and for a profile of other
// programs.
func NewJudge(p *wire.Profile, facts machine.Facts, behaviours [2]string) (machine.Judge, error) {
	for _, b := range behaviours {
		if b != judge.BehaviourArticle && b != judge.BehaviourSample {
			return nil, fmt.Errorf("behaviour %q: expected %s or %s", b, judge.BehaviourArticle, judge.BehaviourSample)
		}
	}
	switch {
	case p.Slices > 0:
		return newSliceJudge(p, facts, behaviours), nil
	case gaffer.IsPieces(p):
		return newFragmentJudge(p, facts), nil
	case p.Handshake:
		return newConnectJudge(p, facts, behaviours), nil
	}
	return nil, errors.New("expected a profile with slices, the article's fragments or its handshake")
}

// Behaviours returns the names of the behaviours that a side of such a flow can have. The
// first open ones fit what the side writes equally well.
func Behaviours(p *wire.Profile, facts machine.Facts, side machine.Side) (names []string, open int) {
	names = judge.BehavioursOf(p)
	if style, ok := facts.Settings.(Style); ok && len(names) == 2 && style[side] {
		return []string{judge.BehaviourSample, judge.BehaviourArticle}, 1
	}
	return names, len(names)
}

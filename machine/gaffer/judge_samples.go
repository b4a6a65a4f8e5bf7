package gaffer

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// IsSample reports whether a profile is of the article series' programs that send
// no acks of packets: large blocks, fragments, connections.
func IsSample(p *wire.Profile) bool {
	return p.Slices > 0 || isPieces(p) || p.Handshake
}

// isPieces reports whether a profile is of the fragmentation sample.
func isPieces(p *wire.Profile) bool {
	return p.Fragments == wire.FragmentsArticle && !p.HasAcks() && p.SequenceBits() > 0
}

// NewSampleJudge gives the judge of such a flow, whose sides behave as named. Of
// facts it uses where the tap stands.
func NewSampleJudge(p *wire.Profile, facts machine.Facts, behaviours [2]string) (machine.Judge, error) {
	for _, b := range behaviours {
		if b != behaviourArticle && b != behaviourSample {
			return nil, fmt.Errorf("behaviour %q: expected %s or %s", b, behaviourArticle, behaviourSample)
		}
	}
	switch {
	case p.Slices > 0:
		return newSliceJudge(p, facts, behaviours), nil
	case isPieces(p):
		return newFragmentJudge(p, facts), nil
	case p.Handshake:
		return newConnectJudge(p, facts, behaviours), nil
	}
	return nil, errors.New("expected a profile with slices, the article's fragments or its handshake")
}

// SampleBehaviours names what a side of such a flow can be held against, and how
// many of them its packets suggest alike.
func SampleBehaviours(p *wire.Profile, facts machine.Facts, side machine.Side) (names []string, open int) {
	names = BehavioursOf(p)
	if style, ok := facts.Settings.(SampleStyle); ok && len(names) == 2 && style[side] {
		return []string{behaviourSample, behaviourArticle}, 1
	}
	return names, len(names)
}

package replay

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// lossyJudge judges a flow of a lossy capture, which lacks packets. Where a divergence rests on
// an absence, the judge ignores it and begins anew behind it, as for a capture that begins
// there.
type lossyJudge struct {
	protocol   *dissect.Protocol
	config     *dissect.Config
	behaviours [2]string
	judge      machine.Judge
	opinions   [2]machine.Opinion
	last       [2]*machine.Divergence // what the judge found last
	ignored    uint64
	sides      [2]uint64 // ignored divergences, by the side that seemed to diverge
	rules      map[*machine.Rule]bool
	until      machine.Instant // divergences before this time are ignored; 0 for all
	full       bool            // nothing more is judged
}

// ignoredMost bounds how often a judge begins anew.
const ignoredMost = 10000

func newLossyJudge(p *dissect.Protocol, c *dissect.Config, behaviours [2]string) (*lossyJudge, error) {
	f := &lossyJudge{protocol: p, config: c, behaviours: behaviours, rules: map[*machine.Rule]bool{}}
	return f, f.begin()
}

func (f *lossyJudge) begin() (err error) {
	f.last = [2]*machine.Divergence{}
	f.judge, err = f.protocol.NewJudge(f.config, f.behaviours)
	return err
}

// observe judges the next datagram. Where the file counts dropped packets, no more divergences
// are ignored than these can explain. One missing packet can show in what both ends say.
func (f *lossyJudge) observe(d *machine.Datagram, dropped uint64) {
	if f.full {
		return
	}
	var before [2]uint64
	for s := range before {
		before[s] = f.judge.Opinion(machine.Side(s)).Compared
	}
	f.judge.Observe(d)
	for s := range f.opinions {
		o := f.judge.Opinion(machine.Side(s))
		v := o.Divergence
		if v == nil || v == f.last[s] || f.opinions[s].Divergence != nil {
			continue
		}
		f.last[s] = v
		if !v.RestsOn.Absence() || dropped > 0 && f.ignored >= 4*dropped || f.until != 0 && d.At >= f.until {
			f.opinions[s].Divergence = v
			continue
		}
		if f.ignored++; f.ignored > ignoredMost {
			f.full = true
		}
		f.sides[s]++
		f.rules[v.Rule] = true
		// The datagram that diverges need not be one that was compared, such as a fragment that
		// is no packet's first.
		var ignored [2]uint64
		ignored[s] = o.Compared - before[s]
		f.fold(ignored)
		if f.begin() != nil {
			f.full = true // never true: the same arguments made a judge before
		}
		return
	}
}

// fold adds what the present judge found of both sides. So many of the packets that it compared
// diverge and were ignored.
func (f *lossyJudge) fold(ignored [2]uint64) {
	f.judge.Finish()
	for s := range f.opinions {
		o, add := &f.opinions[s], f.judge.Opinion(machine.Side(s))
		o.Compared += add.Compared
		o.Undecided += min(add.Undecided+ignored[s], add.Compared) // it may have left open all that it compared
		o.Inferred.Submitted += add.Inferred.Submitted
		o.Inferred.Refused += add.Inferred.Refused
		o.Inferred.Tick = add.Inferred.Tick
		o.Inferred.Resend, o.Inferred.ResendKnown = add.Inferred.Resend, add.Inferred.ResendKnown
		if o.Why == "" {
			o.Why = add.Why
		}
	}
}

func (f *lossyJudge) finish(why string) {
	f.fold([2]uint64{})
	for s := range f.opinions {
		if o := &f.opinions[s]; o.Undecided > 0 {
			o.Why = why
		}
	}
}

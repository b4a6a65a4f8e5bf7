package replay

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// forgiving judges a flow of which the capture lacks packets: where something is
// missing, a judge begins anew behind it, as for a capture that was joined there.
type forgiving struct {
	protocol   *dissect.Protocol
	config     *dissect.Config
	behaviours [2]string
	judge      machine.Judge
	opinions   [2]machine.Opinion
	last       [2]*machine.Divergence // what the judge has told
	forgiven   uint64
	sides      [2]uint64 // of it, by who seemed to diverge
	rules      map[*machine.Rule]bool
	before     machine.Instant // when what is missing is forgiven; 0 for always
	full       bool            // no more is judged
}

// forgivenMost bounds how often a judge begins anew.
const forgivenMost = 10000

func newForgiving(p *dissect.Protocol, c *dissect.Config, behaviours [2]string) (*forgiving, error) {
	f := &forgiving{protocol: p, config: c, behaviours: behaviours, rules: map[*machine.Rule]bool{}}
	return f, f.begin()
}

func (f *forgiving) begin() (err error) {
	f.last = [2]*machine.Divergence{}
	f.judge, err = f.protocol.NewJudge(f.config, f.behaviours)
	return err
}

// observe takes the next datagram. Of a file that counts what was dropped, no
// more is forgiven than that can explain: a packet that is missing shows in what
// both ends say.
func (f *forgiving) observe(d *machine.Datagram, dropped uint64) {
	if f.full {
		return
	}
	f.judge.Observe(d)
	for s := range f.opinions {
		v := f.judge.Opinion(machine.Side(s)).Divergence
		if v == nil || v == f.last[s] || f.opinions[s].Divergence != nil {
			continue
		}
		f.last[s] = v
		if !v.RestsOn.Absence() || dropped > 0 && f.forgiven >= 4*dropped || f.before != 0 && d.At >= f.before {
			f.opinions[s].Divergence = v
			continue
		}
		if f.forgiven++; f.forgiven > forgivenMost {
			f.full = true
		}
		f.sides[s]++
		f.rules[v.Rule] = true
		f.fold()
		f.opinions[s].Undecided++
		if f.begin() != nil {
			f.full = true // cannot be: the same arguments made one before
		}
		return
	}
}

// fold adds what the present judge found of both sides.
func (f *forgiving) fold() {
	f.judge.Finish()
	for s := range f.opinions {
		o, add := &f.opinions[s], f.judge.Opinion(machine.Side(s))
		o.Compared += add.Compared
		o.Undecided += add.Undecided
		o.Inferred.Submitted += add.Inferred.Submitted
		o.Inferred.Refused += add.Inferred.Refused
		o.Inferred.Tick = add.Inferred.Tick
		if o.Why == "" {
			o.Why = add.Why
		}
	}
}

func (f *forgiving) finish(why string) {
	f.fold()
	for s := range f.opinions {
		if o := &f.opinions[s]; o.Undecided > 0 {
			o.Why = why
		}
	}
}

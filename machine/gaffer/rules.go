package gaffer

import (
	"github.com/ackscope/ackscope/machine"
)

func (t *Tracker) ackWentBack(p *sighting, back int, sure machine.Certainty, out *machine.Effects)  {}
func (t *Tracker) bitWithdrawn(p *sighting, q uint32, sure machine.Certainty, out *machine.Effects) {}
func (t *Tracker) claimUnseen(p *sighting, c Claims, n int, out *machine.Effects) {
	s := &t.sides[p.from]
	q := (c.Newest - uint32(n)) & t.rules.mask()
	s.unseen++
	s.EnterReceived(q)
}
func (t *Tracker) again(s *side, p *sighting, e *Sent, out *machine.Effects) {
	if p.count == 0 {
		s.resends++
	}
}
func (t *Tracker) advance(s *side, p *sighting, ahead int, out *machine.Effects)    {}
func (t *Tracker) overtaken(s *side, p *sighting, behind int, out *machine.Effects) {}
func (s *side) lies() bool                                                          { return false }
func (t *Tracker) malformed(d *machine.Datagram, err error, out *machine.Effects)   {}

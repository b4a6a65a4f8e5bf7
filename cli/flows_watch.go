package cli

import (
	"bytes"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// watch prints flows while they go on.
func (p *flowPrinter) watch(live *liveFlags, watch *watchFlags, from *recording) error {
	p.picked.begin(from)
	p.told = nil
	o, err := p.app.options()
	if err != nil {
		return err
	}
	r, err := live.begin(p.app, watch, from)
	if err != nil {
		return err
	}
	if p.picked.asksPackets() {
		o.Sink = p.picked.take
	}
	o.Gone = func(f *analyze.Flow, why analyze.Reason) {
		p.app.letGo(f, why)
		if p.rows != nil && r.err == nil {
			r.err = p.flow(f, why.String(), false)
		}
		delete(p.picked.passed, f)
		delete(p.told, f)
	}
	return r.show(o, p.rows != nil, func() { p.tick(r) }, p.all)
}

// tick shows the flows as they are now.
func (p *flowPrinter) tick(r *running) {
	if r.screen != nil {
		var text bytes.Buffer
		width, height := r.screen.size()
		_ = p.app.writeFlowTable(&text, r.session, p.picked, p.paint, tableRoom{width, height - 4}) // a buffer does not fail
		r.screen.draw(text.Bytes())
		return
	}
	if p.told == nil {
		p.told = map[*analyze.Flow]machine.Instant{}
	}
	for _, f := range r.session.Flows() {
		if at, ok := p.told[f]; (!ok || at != f.Last) && r.err == nil {
			p.told[f] = f.Last
			r.err = p.flow(f, "", true)
		}
	}
}

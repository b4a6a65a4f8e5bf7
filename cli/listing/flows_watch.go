package listing

import (
	"bytes"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/machine"
)

// watch prints flows of live traffic.
func (p *flowPrinter) watch(live *reader.LiveFlags, watch *reader.WatchFlags, from *reader.Recording) error {
	p.picked.begin(from)
	p.printed = nil
	o, err := p.app.Options()
	if err != nil {
		return err
	}
	r, err := live.Begin(p.app, watch, from)
	if err != nil {
		return err
	}
	if p.picked.asksPackets() {
		o.Sink = p.picked.take
	}
	o.Sink = p.gate.Sink(from, o.Sink)
	o.Gone = func(f *analyze.Flow, why analyze.Reason) {
		p.app.LetGo(f, why)
		p.gate.Flow(f)
		if p.rows != nil && r.Err == nil {
			r.Err = p.flow(f, why.String(), false)
		}
		delete(p.picked.passed, f)
		delete(p.printed, f)
	}
	return r.Show(o, p.rows != nil, func() { p.tick(r) }, func(s *analyze.Session) error {
		p.gate.Session(s)
		return p.all(s)
	})
}

// tick shows the current flows.
func (p *flowPrinter) tick(r *reader.Running) {
	if r.Screen != nil {
		var text bytes.Buffer
		width, height := r.Screen.Size()
		// Writing to a buffer cannot fail.
		_ = writeFlowTable(&text, r.Session, p.picked, p.paint, tableRoom{width, height - 4})
		r.Screen.Draw(text.Bytes())
		return
	}
	if p.printed == nil {
		p.printed = map[*analyze.Flow]machine.Instant{}
	}
	for _, f := range r.Session.Flows() {
		if at, ok := p.printed[f]; (!ok || at != f.Last) && r.Err == nil {
			p.printed[f] = f.Last
			r.Err = p.flow(f, "", true)
		}
	}
}

package ring

import (
	"slices"

	"github.com/ackscope/ackscope/machine"
)

// Pin holds files of a ring.
type Pin struct {
	ring     *Ring
	from, to machine.Instant
	files    []*file
	over     bool // it was released or given up
}

// mostPins bounds the pins of a ring. Beyond it the oldest pin is given up.
// Source: choice, a finding every second for an hour
const mostPins = 4096

// Pin keeps the files that have frames of a time span until Release. Those to come are included.
// The ring gives a pin up beyond Options.PinnedBytes, and beyond 4,096 pins.
func (r *Ring) Pin(from, to machine.Instant) *Pin {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &Pin{ring: r, from: from, to: to}
	r.pins = append(r.pins, p)
	for _, f := range r.files {
		if !f.ended.IsZero() { // the open one is the newest, which stays; end looks at it
			p.hold(f)
		}
	}
	for len(r.pins) > mostPins || r.pinned() > r.options.PinnedBytes {
		r.giveUp()
	}
	return p
}

// hold holds a file that has frames of the pin's span, or that may have.
func (p *Pin) hold(f *file) {
	if f.overlaps(p.from, p.to) {
		f.held++
		p.files = append(p.files, f)
	}
}

// Release lets the files go. A second call does nothing.
func (p *Pin) Release() {
	p.ring.mu.Lock()
	defer p.ring.mu.Unlock()
	p.ring.letGo(p)
}

func (r *Ring) letGo(p *Pin) {
	if p.over {
		return
	}
	p.over = true
	for _, f := range p.files {
		f.held--
	}
	p.files = nil
	i := slices.Index(r.pins, p)
	r.pins = slices.Delete(r.pins, i, i+1)
}

// giveUp lets the files of the oldest pin go that holds some.
func (r *Ring) giveUp() {
	i := max(0, slices.IndexFunc(r.pins, func(p *Pin) bool { return len(p.files) > 0 }))
	r.letGo(r.pins[i])
	r.status.GivenUp++
}

// Held reports whether the pin holds its files: it was neither released nor given up.
func (p *Pin) Held() bool {
	p.ring.mu.Lock()
	defer p.ring.mu.Unlock()
	return !p.over
}

// pinned returns the bytes of the files that pins hold.
func (r *Ring) pinned() (n int64) {
	for _, f := range r.files {
		if f.held > 0 {
			n += f.Bytes
		}
	}
	return n
}

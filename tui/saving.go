package tui

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// saving is packets on their way into a capture file, in the background.
type saving struct {
	path    string
	total   int
	written int // under the store's lock, as what follows
	err     error
	done    bool
}

// saveShown begins to write the packets shown to a capture file.
func (m *Model) saveShown(path string) {
	switch {
	case path == "":
		m.fail("w: expected a file name")
		return
	case m.o.Save == nil:
		m.fail("saving is not possible here")
		return
	case m.packet.sieve != nil && !m.packet.sieve.done && !m.store.growing:
		m.fail("the filter is still at work: try again when it is through")
		return
	case m.saving != nil && !m.saving.done:
		m.fail("%s is still being written", m.saving.path)
		return
	}
	out, err := m.o.Save(path, m.store.in)
	if err != nil {
		m.fail("%v", err)
		return
	}
	x := &saving{path: path, total: m.packet.rows(m)}
	m.saving = x
	sieve, s := m.packet.sieve, m.store
	s.work(func() {
		err := x.write(s, sieve, out)
		if err == nil {
			err = out.Close()
		} else {
			err = errors.Join(err, out.Abort())
		}
		s.Lock()
		defer s.Unlock()
		x.err, x.done = err, true
		s.tell()
	})
}

// write copies the packets that the sieve leaves; nil for all.
func (x *saving) write(s *Store, sieve *sieve, out Saver) error {
	near := s.in.Near()
	near.Expect(capture.MostStretch)
	var frame capture.Frame
	var buf []byte
	type at struct {
		ref    machine.Ref
		offset int64
	}
	list := make([]at, 0, batch)
	for row := 0; row < x.total; {
		list = list[:0]
		s.Lock()
		for ; row < x.total && len(list) < batch; row++ {
			n, ok := row, true
			if sieve != nil {
				n, ok = sieve.hits.nth(row)
			}
			if !ok {
				x.total = row
				break
			}
			ref, offset := s.timeline.Where(n)
			list = append(list, at{ref, offset})
		}
		x.written = row
		s.tell()
		s.Unlock()
		for _, p := range list {
			var err error
			if buf, err = near.ReadAt(p.ref, p.offset, &frame, buf); err != nil {
				return err
			}
			if err := out.Write(&frame); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveProgram ends the program; while packets are being saved once they are, so
// that the file is whole. Who asks again leaves at once.
func (m *Model) leaveProgram() { m.leaveFor(m.o.File) }

// leaveFor does so to go to another capture; to none where it is this one.
func (m *Model) leaveFor(file int) {
	m.next = file
	if x := m.saving; x != nil && !x.done && !m.leaving {
		m.leaving = true
		m.say("%s is being written: leaving when it is whole; again to leave now", x.path)
		return
	}
	m.quit = true
}

// settleSaving tells how saving has ended.
func (m *Model) settleSaving() {
	x := m.saving
	if x == nil || !x.done {
		return
	}
	m.saving = nil
	if x.err != nil {
		m.leaving = false
		m.fail("%s: %v", x.path, x.err)
		return
	}
	m.quit = m.quit || m.leaving
	m.say("%s written to %s", show.Plural(x.total, "packet"), x.path)
}

// progress says in a few words how far saving is; empty for nothing to save.
func (x *saving) progress() string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("saving %d%%  ", 100*x.written/max(x.total, 1))
}

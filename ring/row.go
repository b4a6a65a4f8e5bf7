package ring

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
)

// Row names the files of a row, each up to a limit, like -b of tshark and dumpcap:
// name_00001_20261121130500.pcapng, … A limit of 0 is none.
type Row struct {
	Path     string // of all files, without the number and the time
	Bytes    int64
	Duration time.Duration // between the first frame of a file and the first of the next
	Packets  uint64

	number  int
	written uint64 // frames in the current file
	began   machine.Instant
}

// Next begins a file, and returns its name.
func (r *Row) Next(now time.Time) string {
	r.number++
	r.written = 0
	extension := filepath.Ext(r.Path)
	return fmt.Sprintf("%s_%05d_%s%s", strings.TrimSuffix(r.Path, extension), r.number,
		now.Format("20060102150405"), extension)
}

// Full reports whether the current file, of so many bytes, ends before a frame of that time.
func (r *Row) Full(bytes int64, at machine.Instant) bool {
	return r.written > 0 && (r.Bytes > 0 && bytes >= r.Bytes ||
		r.Packets > 0 && r.written >= r.Packets ||
		r.Duration > 0 && at.Sub(r.began) >= r.Duration)
}

// Note counts a written frame.
func (r *Row) Note(at machine.Instant) {
	if r.written == 0 {
		r.began = at
	}
	r.written++
}

// Kept is a unit of a shelf: a file, or files that belong together.
type Kept struct {
	Made  []outfile.Made
	Bytes int64

	held int // pins that hold it
}

// Remove deletes the files. It does not delete a file that has replaced one of them.
func (k *Kept) Remove() error {
	var err error
	for _, m := range k.Made {
		err = errors.Join(err, m.Remove())
	}
	return err
}

// Shelf holds what was written, the oldest first, and says what goes to keep its bounds. A bound
// of 0 is none.
type Shelf struct {
	Files int
	Bytes int64

	kept  []*Kept
	bytes int64
}

// Add puts the newest on the shelf.
func (s *Shelf) Add(k *Kept) {
	s.kept = append(s.kept, k)
	s.bytes += k.Bytes
}

// over reports whether a bound is exceeded. The newest stays in any case.
func (s *Shelf) over() bool {
	return len(s.kept) > 1 && (s.Files > 0 && len(s.kept) > s.Files || s.Bytes > 0 && s.bytes > s.Bytes)
}

// Excess takes the oldest that must go from the shelf. It returns nil if the bounds are kept, or if
// pins hold all but the newest. The caller removes its files.
func (s *Shelf) Excess() *Kept {
	if !s.over() {
		return nil
	}
	for i, k := range s.kept[:len(s.kept)-1] {
		if k.held == 0 {
			s.take(i)
			return k
		}
	}
	return nil
}

func (s *Shelf) take(i int) {
	s.bytes -= s.kept[i].Bytes
	if i == 0 {
		s.kept = s.kept[1:] // mostly, and without a copy
		return
	}
	s.kept = slices.Delete(s.kept, i, i+1)
}

// resize changes the size of one that is on the shelf.
func (s *Shelf) resize(k *Kept, bytes int64) {
	s.bytes += bytes - k.Bytes
	k.Bytes = bytes
}

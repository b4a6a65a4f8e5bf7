package export

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/ackscope/ackscope/machine"
)

// note is a Note as it is sorted: of one size.
type note struct {
	ref       machine.Ref // or any other number that comes first in the order
	at        machine.Instant
	order     uint64
	other     machine.Ref
	sequence  int64
	number    int64 // another sequence number
	rtt       int64
	length    uint32
	word      uint32
	kind      NoteKind
	side      machine.Side
	certainty machine.Certainty
}

const (
	noteBytes = 7*8 + 2*4 + 3
	runBuffer = 32 << 10
)

// runNotes is how many notes are sorted in memory, some 20 MB of them; a variable
// for the tests.
var runNotes = 1 << 18

func (x *note) put(b []byte) {
	for i, v := range [...]uint64{uint64(x.ref), uint64(x.at), x.order, uint64(x.other), uint64(x.sequence),
		uint64(x.number), uint64(x.rtt)} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	binary.LittleEndian.PutUint32(b[56:], x.length)
	binary.LittleEndian.PutUint32(b[60:], x.word)
	b[64], b[65], b[66] = byte(x.kind), byte(x.side), byte(x.certainty)
}

func (x *note) get(b []byte) {
	var v [7]uint64
	for i := range v {
		v[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	*x = note{
		ref: machine.Ref(v[0]), at: machine.Instant(v[1]), order: v[2], other: machine.Ref(v[3]), sequence: int64(v[4]),
		number: int64(v[5]), rtt: int64(v[6]),
		length: binary.LittleEndian.Uint32(b[56:]), word: binary.LittleEndian.Uint32(b[60:]),
		kind: NoteKind(b[64]), side: machine.Side(b[65]), certainty: machine.Certainty(b[66]),
	}
}

func compareNotes(x, y *note) int {
	return cmp.Or(cmp.Compare(x.ref, y.ref), cmp.Compare(x.at, y.at), cmp.Compare(x.order, y.order))
}

// sorter puts the notes of one file in the order of its frames: runs of them are
// sorted in memory and wait in a temporary file, from which they are merged.
type sorter struct {
	buffer []note
	spool  *os.File // nil while all fits into the buffer
	size   int64    // of the spool
	runs   runs
	lens   []int64 // bytes of each run in the spool

	head note // the next note
	have bool
}

func (s *sorter) add(x note) error {
	s.buffer = append(s.buffer, x)
	if len(s.buffer) < runNotes {
		return nil
	}
	return s.spill()
}

// spill writes the buffer as one more run.
func (s *sorter) spill() error {
	s.order()
	if s.spool == nil {
		f, err := os.CreateTemp("", "ackscope-notes")
		if err != nil {
			return fmt.Errorf("keeping notes on frames: %w", err)
		}
		s.spool = f
		// Unlinked at once where the system lets open files go; elsewhere on close.
		_ = os.Remove(f.Name())
	}
	w := bufio.NewWriterSize(s.spool, runBuffer)
	var b [noteBytes]byte
	for i := range s.buffer {
		s.buffer[i].put(b[:])
		if _, err := w.Write(b[:]); err != nil {
			return fmt.Errorf("keeping notes on frames: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("keeping notes on frames: %w", err)
	}
	n := int64(len(s.buffer)) * noteBytes
	s.lens = append(s.lens, n)
	s.size += n
	s.buffer = s.buffer[:0]
	return nil
}

func (s *sorter) order() {
	slices.SortFunc(s.buffer, func(x, y note) int { return compareNotes(&x, &y) })
}

// sort ends the adding.
func (s *sorter) sort() error {
	s.order()
	at := int64(0)
	for _, n := range s.lens {
		s.runs = append(s.runs, &notesRun{from: bufio.NewReaderSize(io.NewSectionReader(s.spool, at, n), runBuffer)})
		at += n
	}
	s.runs = append(s.runs, &notesRun{rest: s.buffer})
	kept := s.runs[:0]
	for _, r := range s.runs {
		ok, err := r.next()
		if err != nil {
			return err
		}
		if ok {
			kept = append(kept, r)
		}
	}
	s.runs = kept
	heap.Init(&s.runs)
	return s.next()
}

// next sets the head.
func (s *sorter) next() error {
	if s.have = len(s.runs) > 0; !s.have {
		return nil
	}
	s.head = s.runs[0].head
	ok, err := s.runs[0].next()
	switch {
	case err != nil:
		return err
	case ok:
		heap.Fix(&s.runs, 0)
	default:
		heap.Pop(&s.runs)
	}
	return nil
}

func (s *sorter) close() error {
	if s.spool == nil {
		return nil
	}
	err := s.spool.Close()
	_ = os.Remove(s.spool.Name()) // fails where it is unlinked already
	return err
}

// notesRun is a run of sorted notes: read from the spool, or what was left in memory.
type notesRun struct {
	from *bufio.Reader
	rest []note
	head note
}

func (r *notesRun) next() (bool, error) {
	if r.from == nil {
		if len(r.rest) == 0 {
			return false, nil
		}
		r.head, r.rest = r.rest[0], r.rest[1:]
		return true, nil
	}
	var b [noteBytes]byte
	switch _, err := io.ReadFull(r.from, b[:]); {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading back notes on frames: %w", err)
	}
	r.head.get(b[:])
	return true, nil
}

// runs is a heap of runs, by their heads.
type runs []*notesRun

func (r runs) Len() int           { return len(r) }
func (r runs) Less(i, j int) bool { return compareNotes(&r[i].head, &r[j].head) < 0 }
func (r runs) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *runs) Push(x any)        { *r = append(*r, x.(*notesRun)) }

func (r *runs) Pop() any {
	old := *r
	x := old[len(old)-1]
	*r = old[:len(old)-1]
	return x
}

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

// note is a Note in the fixed-size form in which it is sorted.
type note struct {
	ref       machine.Ref // the first sort key: a frame or any other number
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

// runNotes is how many notes are sorted in memory, about 20 MB. It is a
// variable so that tests can change it.
var runNotes = 1 << 18

func (x *note) put(b []byte) {
	for i, v := range [...]uint64{
		uint64(x.ref), uint64(x.at), x.order, uint64(x.other), uint64(x.sequence),
		uint64(x.number), uint64(x.rtt),
	} {
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

// sorter sorts the notes of one file by frame. It sorts runs of notes in
// memory, writes them to a temporary file, and merges them from there.
type sorter struct {
	buffer []note
	spool  *os.File // nil as long as all notes fit into the buffer
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

// spill writes the buffer to the file as another run.
func (s *sorter) spill() error {
	s.order()
	if s.spool == nil {
		f, err := os.CreateTemp("", "ackscope-notes")
		if err != nil {
			return fmt.Errorf("keeping notes on frames: %w", err)
		}
		s.spool = f
		// Unlink it at once if the system allows that for open files; otherwise close
		// removes it.
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

// sort starts the merge. No note can be added after it.
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

// next reads the next note into head.
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
	_ = os.Remove(s.spool.Name()) // fails if it is unlinked already
	return err
}

// notesRun is a run of sorted notes: from the spool, or the rest in memory.
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

// runs is a heap of runs, ordered by their heads.
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

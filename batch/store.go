package batch

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/unit"
)

// A work folder keeps what came of each capture, in segments. Each process that analyses captures
// appends to a segment of its own, so none waits for another, on this machine or elsewhere:
//
//	segment: magic | record | record | …
//	record:  length (4 bytes, of what follows the sum) | CRC-32 (4) | kind (1) | key (16) | body
//	body of a result: lengths of the parts (4 × 4) | status in JSON | aggregates | flows | findings
//	body of a limit: nanoseconds (8)
//
// A process that dies leaves the last record torn at worst. Readers take the records before it.
const (
	segmentMagic  = "ackscope batch 1\n"
	segmentEnding = ".segment"
	recordHead    = 8
	resultHead    = 16
)

// Kinds of records.
const (
	kindResult byte = 1
	kindDeath  byte = 2 // a process ended while it analysed the capture
	kindLate   byte = 3 // the analysis did not end within a limit
)

// Key names what came of a capture: a hash of its name, its files, its labels and the options. So
// what changed is analysed again.
type Key [16]byte

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Key) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err == nil && len(b) != len(k) {
		err = errors.New("key: expected 32 digits")
	}
	copy(k[:], b)
	return err
}

// place is where a result is.
type place struct {
	segment uint32 // from 1; 0 for no place
	length  uint32 // of the body
	at      int64  // of the body
}

// Segment is a segment that a process appends to. It is safe for concurrent use.
type Segment struct {
	mu   sync.Mutex
	file *outfile.File
	name string
	at   int64
	buf  []byte
}

// NewSegment creates a segment in a work folder.
func NewSegment(o *outfile.Outputs, folder string) (*Segment, error) {
	name := outfile.Unguessable() + segmentEnding
	file, err := o.Stream(filepath.Join(folder, name), outfile.Text)
	if err != nil {
		return nil, err
	}
	s := &Segment{file: file, name: name}
	return s, s.write([]byte(segmentMagic))
}

func (s *Segment) write(b []byte) error {
	n, err := s.file.Write(b)
	s.at += int64(n)
	return err
}

// add appends a record and returns where its body is.
func (s *Segment) add(kind byte, key Key, body ...[]byte) (at int64, length int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := append(slices.Grow(s.buf[:0], 1<<12), make([]byte, recordHead)...)
	b = append(append(b, kind), key[:]...)
	begin := len(b)
	for _, part := range body {
		b = append(b, part...)
	}
	if uint64(len(b)) > 1<<32-1 {
		return 0, 0, fmt.Errorf("what came of one capture is %d bytes: expected less than 4 GiB", len(b))
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-recordHead))
	binary.LittleEndian.PutUint32(b[4:], crc32.ChecksumIEEE(b[recordHead:]))
	if cap(b) <= mostKept {
		s.buf = b
	}
	at = s.at + int64(begin)
	return at, len(b) - begin, s.write(b)
}

// mostKept is how much memory a segment keeps between records.
const mostKept = 1 << 20

// Close ends the segment.
func (s *Segment) Close() error { return s.file.Commit() }

// addResult appends what came of a capture.
func (s *Segment) addResult(key Key, r *unit.Result) (at int64, length int, err error) {
	status, err := json.Marshal(&r.Status)
	if err != nil {
		return 0, 0, err
	}
	var sums []byte
	if r.Aggregates != nil {
		if sums, err = r.Aggregates.MarshalBinary(); err != nil {
			return 0, 0, err
		}
	}
	parts := [4][]byte{status, sums, frameRows(r.Flows), frameRows(r.Findings)}
	var head [resultHead]byte
	for i, p := range parts {
		binary.LittleEndian.PutUint32(head[4*i:], uint32(len(p)))
	}
	return s.add(kindResult, key, head[:], parts[0], parts[1], parts[2], parts[3])
}

// addLimit appends a time that did not suffice for a capture.
func (s *Segment) addLimit(key Key, limit time.Duration) error {
	_, _, err := s.add(kindLate, key, binary.LittleEndian.AppendUint64(nil, uint64(limit)))
	return err
}

// frameRows writes rows behind their lengths.
func frameRows(rows []unit.Row) (b []byte) {
	n := 0
	for i := range rows {
		n += len(rows[i].Cells) + binary.MaxVarintLen32
	}
	b = make([]byte, 0, n)
	for i := range rows {
		b = append(binary.AppendUvarint(b, uint64(len(rows[i].Cells))), rows[i].Cells...)
	}
	return b
}

// store reads the segments of a work folder.
type store struct {
	folder string
	names  []string // of segments; place.segment is the index, from 1
	files  []*os.File
}

// openStore reads the heads of all records in a work folder, and passes them.
func openStore(folder string, take func(kind byte, key Key, at place)) (*store, error) {
	s := &store{folder: folder}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), segmentEnding) {
			continue
		}
		if err := s.open(e.Name(), take); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// open reads a segment.
func (s *store) open(name string, take func(kind byte, key Key, at place)) error {
	file, err := os.Open(filepath.Join(s.folder, name))
	if err != nil {
		return err
	}
	s.names, s.files = append(s.names, name), append(s.files, file)
	r := bufio.NewReaderSize(file, 1<<16)
	magic := make([]byte, len(segmentMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != segmentMagic {
		return nil //nolint:nilerr // it is of a process that died at once, or of another version
	}
	at, sum := int64(len(magic)), crc32.NewIEEE()
	var head [recordHead + 1 + len(Key{})]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return endOfSegment(err)
		}
		length, kind, key := binary.LittleEndian.Uint32(head[:]), head[recordHead], Key(head[recordHead+1:])
		body := int64(length) - int64(len(head)-recordHead)
		if body < 0 {
			return nil
		}
		sum.Reset()
		_, _ = sum.Write(head[recordHead:])
		if _, err := io.CopyN(sum, r, body); err != nil {
			return endOfSegment(err)
		}
		if sum.Sum32() != binary.LittleEndian.Uint32(head[4:]) {
			return nil // torn by a power loss: what follows is not known to begin here
		}
		at += int64(len(head))
		take(kind, key, place{uint32(len(s.names)), uint32(body), at})
		at += body
	}
}

// endOfSegment returns nil for the end of a segment, torn or not.
func endOfSegment(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// place returns where a result is that a process of this run has appended.
func (s *store) place(segment string, at int64, length int) (place, error) {
	i := slices.Index(s.names, segment)
	if i < 0 {
		if filepath.Base(segment) != segment {
			return place{}, fmt.Errorf("segment %q: expected a name", segment)
		}
		file, err := os.Open(filepath.Join(s.folder, segment))
		if err != nil {
			return place{}, err
		}
		i = len(s.names)
		s.names, s.files = append(s.names, segment), append(s.files, file)
	}
	return place{uint32(i + 1), uint32(length), at}, nil
}

// Parts of a result.
const (
	partStatus = iota
	partAggregates
	partFlows
	partFindings
)

// read returns a part of a result, in the memory of buf if that suffices.
func (s *store) read(p place, part int, buf []byte) ([]byte, error) {
	file := s.files[p.segment-1]
	var head [resultHead]byte
	if _, err := file.ReadAt(head[:], p.at); err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	from, length := uint64(resultHead), uint64(0)
	for i := 0; i <= part; i++ {
		from += length
		length = uint64(binary.LittleEndian.Uint32(head[4*i:]))
	}
	if from+length > uint64(p.length) {
		return nil, fmt.Errorf("%s: a result is damaged", file.Name())
	}
	buf = slices.Grow(buf[:0], int(length))[:length]
	if _, err := file.ReadAt(buf, p.at+int64(from)); err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return buf, nil
}

// status returns the status of a result.
func (s *store) status(p place) (x unit.Status, err error) {
	b, err := s.read(p, partStatus, nil)
	if err == nil {
		err = json.Unmarshal(b, &x)
	}
	return x, err
}

// limit returns a time that did not suffice for a capture.
func (s *store) limit(p place) (time.Duration, error) {
	var b [8]byte
	file := s.files[p.segment-1]
	if p.length != uint32(len(b)) {
		return 0, fmt.Errorf("%s: a limit is damaged", file.Name())
	}
	_, err := file.ReadAt(b[:], p.at)
	return time.Duration(min(binary.LittleEndian.Uint64(b[:]), math.MaxInt64)), err
}

// rows passes the rows of a part, each as it was encoded.
func rows(b []byte, row func(cells []byte) error) error {
	for len(b) > 0 {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return errors.New("a result's rows are damaged")
		}
		if err := row(b[used : used+int(n)]); err != nil {
			return err
		}
		b = b[used+int(n):]
	}
	return nil
}

// Close closes the segments.
func (s *store) Close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

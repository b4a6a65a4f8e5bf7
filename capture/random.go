package capture

import (
	"errors"
	"fmt"
	"io"
	"sort"
)

// readAt reads one record at a known offset, independently of the current pass.
// loaded may be nil; otherwise it holds bytes of this file.
func (f *file) readAt(loaded *byteRange, offset int64, fr *Frame, buf []byte) ([]byte, error) {
	src, err := f.source.random()
	if err != nil {
		return buf, err
	}
	if loaded != nil {
		loaded.src = src
		src = loaded
	}
	f.mu.RLock()
	reader := f.reader
	f.mu.RUnlock()
	switch r := reader.(type) {
	case *pcapReader:
		return f.readRecordAt(src, *r, offset, fr, buf)
	default:
		return f.readBlockAt(src, offset, fr, buf)
	}
}

func (f *file) readRecordAt(src io.ReaderAt, r pcapReader, offset int64, fr *Frame, buf []byte) ([]byte, error) {
	if offset < pcapHeader {
		return buf, f.noRecord(offset, "an offset behind the file header", "one before its end")
	}
	buf, err := f.fetch(src, offset, r.header, buf)
	if err != nil {
		return buf, err
	}
	captured, ok := r.head(buf, fr)
	if !ok {
		return buf, f.noRecord(offset, fmt.Sprintf("a captured length of at most %d", r.limit), fmt.Sprint(captured))
	}
	n := r.header + int(captured)
	buf, err = f.fetch(src, offset, n, buf)
	if err != nil {
		return buf, err
	}
	fr.Data = buf[r.header:n:n]
	return buf, nil
}

func (f *file) readBlockAt(src io.ReaderAt, offset int64, fr *Frame, buf []byte) ([]byte, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	i := sort.Search(len(f.sections), func(i int) bool { return f.sections[i].offset > offset }) - 1
	if i < 0 {
		return buf, f.noRecord(offset, "an offset behind the first section header", "one before it")
	}
	r := ngReader{section: f.sections[i]}
	buf, err := f.fetch(src, offset, simpleHead, buf)
	if err != nil {
		return buf, err
	}
	kind, total := r.section.u32(buf), r.section.u32(buf[4:])
	head := enhancedHead
	switch kind {
	case blockEnhanced, blockPacket:
	case blockSimple:
		head = simpleHead
	default:
		return buf, f.noRecord(offset, "a packet block", fmt.Sprintf("block type %#x", kind))
	}
	if total < uint32(head+4) {
		return buf, f.noRecord(offset, fmt.Sprintf("a block length of at least %d", head+4), fmt.Sprint(total))
	}
	if buf, err = f.fetch(src, offset, head, buf); err != nil {
		return buf, err
	}
	captured, expected, found := r.head(f.interfaces, buf, fr, kind, total)
	if expected != "" {
		return buf, f.noRecord(offset, expected, found)
	}
	if buf, err = f.fetch(src, offset, padded(total), buf); err != nil {
		return buf, err
	}
	r.body(buf, fr, head, captured)
	if fr.Untimed {
		fr.At = 0
	}
	return buf, nil
}

// fetch reads n bytes at offset into buf, and grows it if necessary.
func (f *file) fetch(src io.ReaderAt, offset int64, n int, buf []byte) ([]byte, error) {
	if cap(buf) < n {
		buf = make([]byte, n, n+n/2)
	}
	buf = buf[:n]
	got, err := src.ReadAt(buf, offset)
	if got == n {
		return buf, nil
	}
	if errors.Is(err, io.EOF) {
		return buf, f.noRecord(offset, fmt.Sprintf("%d bytes", n), fmt.Sprintf("the end after %d", got))
	}
	return buf, fmt.Errorf("%s: reading at byte %d: %w", f.name, offset, err)
}

func (f *file) noRecord(offset int64, expected, found string) error {
	return fmt.Errorf("%s: no frame begins at byte %d: expected %s, found %s", f.name, offset, expected, found)
}

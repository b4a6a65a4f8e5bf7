package store

import "github.com/ackscope/ackscope/filter"

// Reader reads packets as filters and rows ask for them: without their state.
type Reader struct {
	*filter.Reading
	store *Store
}

// NewReader makes one.
func (s *Store) NewReader() *Reader { return &Reader{s.NewReading(), s} }

// Read returns a packet, which is valid until the store reads again.
func (d *Reader) Read(n int) (*filter.Record, error) {
	s := d.store
	s.Spend(ReadSteps)
	r, err := s.timeline.Read(n)
	if err != nil {
		return nil, err
	}
	if r.Flow = s.FlowOf(n); r.Flow != nil {
		r.Datagram.From = s.timeline.At(n).Marks.From()
	}
	d.Start = s.first
	// A TCP segment's messages are told in the tree; the row tells of the segment.
	return d.Take(r), nil
}

// NewReading prepares what turns records into those of filters.
func (s *Store) NewReading() *filter.Reading {
	return &filter.Reading{Start: s.first, Previous: s.first, FileName: s.in.FileName}
}

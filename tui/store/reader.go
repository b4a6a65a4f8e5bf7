package store

import "github.com/ackscope/ackscope/filter"

// Reader reads packets for filters and rows, without the state of their flows.
type Reader struct {
	*filter.Reading
	store *Store
}

// NewReader returns a reader of the store's packets.
func (s *Store) NewReader() *Reader { return &Reader{s.NewReading(), s} }

// Read returns a packet. It is valid until the store's next Read.
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
	// The row shows a TCP segment as a whole; the tree shows its messages.
	return d.Take(r), nil
}

// NewReading returns a converter from analysis records to filter records.
func (s *Store) NewReading() *filter.Reading {
	return &filter.Reading{Start: s.first, Previous: s.first, FileName: s.in.FileName}
}

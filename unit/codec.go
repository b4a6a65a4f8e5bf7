package unit

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// The first byte of what is encoded. It changes with the encoding, so that workers of two versions
// do not misread each other.
const (
	aggregatesVersion = 1
	resultVersion     = 1
)

// errEncoded is returned for bytes that were not encoded by this version.
var errEncoded = errors.New("not encoded by this version of ackscope, or damaged")

// MarshalBinary encodes the aggregates. Equal aggregates give equal bytes.
func (a *Aggregates) MarshalBinary() ([]byte, error) { return a.AppendBinary(nil) }

// AppendBinary appends what MarshalBinary returns.
func (a *Aggregates) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, aggregatesVersion)
	b = binary.AppendUvarint(b, uint64(len(a.captures)))
	for _, p := range a.Partitions() {
		states := a.captures[p]
		b = binary.AppendUvarint(appendText(b, string(p)), uint64(len(states)))
		for _, s := range slices.Sorted(maps.Keys(states)) {
			b = binary.AppendUvarint(appendText(b, string(s)), states[s])
		}
	}
	b = binary.AppendUvarint(b, uint64(len(a.byKey)))
	for _, k := range a.Keys() {
		for _, text := range []string{string(k.Partition), k.Protocol, k.Dialect, k.Rule, k.Severity} {
			b = appendText(b, text)
		}
		b = a.byKey[k].appendBytes(b)
	}
	return b, nil
}

func (a *Aggregate) appendBytes(b []byte) []byte {
	for _, n := range a.counts() {
		b = binary.AppendUvarint(b, *n)
	}
	b = binary.AppendUvarint(appendText(b, a.Example.Capture), a.Example.Frame)
	for _, h := range a.histograms() {
		b = binary.AppendUvarint(b, uint64(len(*h)))
		for _, n := range *h {
			b = binary.AppendUvarint(b, n)
		}
	}
	return b
}

// counts are the counts in the order of the encoding.
func (a *Aggregate) counts() [7]*uint64 {
	return [...]*uint64{&a.Captures, &a.Flows, &a.Findings, &a.Occurrences, &a.Certain, &a.Packets, &a.Bytes}
}

// histograms are the histograms in the order of the encoding.
func (a *Aggregate) histograms() [3]*Histogram { return [...]*Histogram{&a.RTT, &a.Loss, &a.Delay} }

// UnmarshalBinary replaces the aggregates by those that were encoded. It refuses bytes that
// MarshalBinary did not return, in memory in proportion to them.
func (a *Aggregates) UnmarshalBinary(b []byte) error {
	r := decoder{left: b}
	r.require(r.byte() == aggregatesVersion)
	var read Aggregates
	for range r.count() {
		p := Partition(r.text())
		for range r.count() {
			read.count(p, State(r.text()), r.uint())
		}
	}
	for range r.count() {
		k := Key{Partition: Partition(r.text()), Protocol: r.text(), Dialect: r.text(), Rule: r.text(), Severity: r.text()}
		if r.aggregate(read.at(k)); r.bad {
			break
		}
	}
	if r.bad || len(r.left) > 0 {
		return fmt.Errorf("aggregates: %w", errEncoded)
	}
	if again, _ := read.MarshalBinary(); !bytes.Equal(again, b) { // such as keys that stand twice
		return fmt.Errorf("aggregates: %w", errEncoded)
	}
	*a = read
	return nil
}

func (r *decoder) aggregate(a *Aggregate) {
	for _, n := range a.counts() {
		*n = r.uint()
	}
	a.Example = Example{r.text(), r.uint()}
	for _, h := range a.histograms() {
		n := r.count()
		if r.require(n == 0 || n == Buckets); r.bad || n == 0 {
			continue
		}
		*h = make(Histogram, Buckets)
		for i := range *h {
			(*h)[i] = r.uint()
		}
	}
}

// resultHead is what a result holds beside rows and aggregates.
type resultHead struct {
	Status Status
	Labels []Label
}

// MarshalBinary encodes the whole result. Equal results give equal bytes.
func (r *Result) MarshalBinary() ([]byte, error) { return r.AppendBinary(nil) }

// AppendBinary appends what MarshalBinary returns.
func (r *Result) AppendBinary(b []byte) ([]byte, error) {
	head, err := json.Marshal(resultHead{r.Status, r.Labels})
	if err != nil {
		return nil, err
	}
	sums, err := r.Aggregates.MarshalBinary()
	if err != nil {
		return nil, err
	}
	b = appendText(append(b, resultVersion), string(head))
	b = appendText(b, string(sums))
	for _, rows := range [][]Row{r.Flows, r.Findings} {
		b = binary.AppendUvarint(b, uint64(len(rows)))
		for i := range rows {
			b = appendText(append(b, rows[i].Flow[:]...), string(rows[i].Cells))
		}
	}
	return b, nil
}

// UnmarshalBinary replaces the result by one that was encoded. The cells of rows are checked only
// once they are read.
func (r *Result) UnmarshalBinary(b []byte) error {
	d := decoder{left: b}
	d.require(d.byte() == resultVersion)
	var head resultHead
	read := Result{Aggregates: &Aggregates{}}
	if err := json.Unmarshal(d.take(d.uint()), &head); d.bad || err != nil {
		return fmt.Errorf("result: %w", errEncoded)
	}
	if err := read.Aggregates.UnmarshalBinary(d.take(d.uint())); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	read.Status, read.Labels = head.Status, head.Labels
	for _, rows := range []*[]Row{&read.Flows, &read.Findings} {
		for range d.count() {
			var row Row
			copy(row.Flow[:], d.take(uint64(len(row.Flow))))
			if row.Cells = bytes.Clone(d.take(d.uint())); d.bad {
				break
			}
			*rows = append(*rows, row)
		}
	}
	if d.bad || len(d.left) > 0 {
		return fmt.Errorf("result: %w", errEncoded)
	}
	*r = read
	return nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads what was encoded. After the first fault it returns zeros.
type decoder struct {
	left []byte
	bad  bool
}

// require marks the bytes as bad unless ok.
func (r *decoder) require(ok bool) { r.bad = r.bad || !ok }

// take returns the next n bytes, or nil.
func (r *decoder) take(n uint64) []byte {
	if r.require(n <= uint64(len(r.left))); r.bad {
		return nil
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

func (r *decoder) byte() byte {
	if b := r.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *decoder) uint() uint64 {
	v, n := binary.Uvarint(r.left)
	if r.require(n > 0); r.bad {
		return 0
	}
	r.left = r.left[n:]
	return v
}

func (r *decoder) text() string { return string(r.take(r.uint())) }

// count reads the length of a list. Each of its items takes a byte at least.
func (r *decoder) count() int {
	n := r.uint()
	if r.require(n <= uint64(len(r.left))); r.bad {
		return 0
	}
	return int(n)
}

package filter

import (
	"math"
	"net/netip"
	"strconv"

	"github.com/ackscope/ackscope/dissect"
)

// Needs is what a filter or a field requires of the reader of the capture.
type Needs uint8

const (
	NeedFlow     Needs = 1 << iota // the packet's flow and its protocol
	NeedFields                     // the decoded fields
	NeedEvents                     // events
	NeedMessages                   // the lives of messages
	NeedFindings                   // anomalies
	NeedState                      // the sides' figures at the packet
	NeedFate                       // what became of the packet, which only later ones show
)

// NeedHindsight is what only a run of its own shows before the packets are asked.
const NeedHindsight = NeedFate | NeedMessages | NeedEvents

// Live reports whether a filter or a field reads what a flow's sides know at the packet
// (Knowledge): figures and the vantage. The analysis of later packets changes these. All else
// stands in the packet's own record, or does not change for the flow.
func (n Needs) Live() bool { return n&NeedState != 0 }

// Field is a name in the filter language, with its documentation and its
// values.
type Field struct {
	Name  string
	Kind  Kind
	Unit  string // "bytes", "ms"; empty if there is none
	Doc   string // one sentence
	Hex   bool
	Words []string          // all possible values; nil if they are not a closed list
	Of    *dissect.Protocol // the protocol of a decoded field; nil for fields of every capture

	Needs   Needs                // what it requires of the reader of the capture
	Scope   Scope                // what it describes
	Enum    map[uint64]string    // words that filters may use for numbers; nil if there are none
	Present Predicate            // whether a heading exists; nil for fields with values
	Specs   []*dissect.FieldSpec // the decoded fields with this name; nil for all other fields
	Values
	Bits    int  // width of a number in hexadecimal
	Seconds bool // a Time that is printed in seconds since 1970
	Colons  bool // bytes that are printed as aa:bb:cc
}

// Values holds the source that fits the field's kind. Uint serves the kinds
// Uint and Bool. Int serves Int, Duration and Time. Bytes serves Bytes and
// Text.
type Values struct {
	Uint    Source[uint64]
	Int     Source[int64]
	Float   Source[float64]
	Bytes   Source[[]byte]
	Address Source[netip.Addr]
	// Strings is a faster source for texts that are constants of the program. Bare
	// is a faster test for the existence of a value. Both may be nil.
	Strings Source[string]
	Bare    Predicate
	// In4 is a faster test of an IPv4 field against a network, which is what most
	// filters do. It is nil for other fields.
	In4 func(Network4, bool) Predicate
}

// Network4 is a test of an IPv4 address: inside a network, or outside it.
type Network4 struct {
	mask, want uint32
	outside    bool
}

// Passes reports whether an address, in big-endian order, passes the test.
func (n Network4) Passes(a uint32) bool { return (a&n.mask == n.want) != n.outside }

// ColumnOnly reports whether the field has no values in records. Only a listing
// that takes the frame apart has them, so that filters cannot use the field.
func (f *Field) ColumnOnly() bool {
	v := &f.Values
	return f.Present == nil && len(f.Specs) == 0 && v.Uint == nil && v.Int == nil && v.Float == nil &&
		v.Bytes == nil && v.Address == nil
}

func (v *Values) exist() Predicate {
	switch {
	case v.Bare != nil:
		return v.Bare
	case v.Uint != nil:
		return v.Uint(Anything, false)
	case v.Int != nil:
		return v.Int(Anything, false)
	case v.Float != nil:
		return v.Float(Anything, false)
	case v.Strings != nil:
		return v.Strings(Anything, false)
	case v.Bytes != nil:
		return v.Bytes(Anything, false)
	default:
		return v.Address(Anything, false)
	}
}

// Column is a field as a column of a listing: what `-T fields -e NAME` prints.
type Column struct {
	Field *Field
	run   Predicate
}

// Column returns the field as a column.
func (f *Field) Column() *Column {
	c := &Column{Field: f}
	switch {
	case len(f.Specs) > 0 && f.Kind != Heading:
		c.run = func(r *Record) bool {
			for i := range r.Dissection().Fields {
				if d := &r.dissection.Fields[i]; f.Is(d.Spec) {
					r.sep()
					r.text = AppendValue(r.text, d)
				}
			}
			return false
		}
	case f.Present != nil:
		c.run = func(r *Record) bool {
			if f.Present(r) {
				r.text = append(r.text, '1')
			}
			return false
		}
	case f.Uint != nil:
		c.run = f.Uint(func(r *Record, v uint64) bool { r.sep(); r.text = f.appendUint(r.text, v); return false }, false)
	case f.Int != nil:
		c.run = f.Int(func(r *Record, v int64) bool { r.sep(); r.text = f.appendInt(r.text, v); return false }, false)
	case f.Float != nil:
		c.run = f.Float(func(r *Record, v float64) bool { r.sep(); r.text = appendFloat(r.text, v); return false }, false)
	case f.Bytes != nil:
		c.run = f.Bytes(func(r *Record, v []byte) bool { r.sep(); r.text = f.appendBytes(r.text, v); return false }, false)
	default:
		c.run = f.Address(func(r *Record, v netip.Addr) bool { r.sep(); r.text = v.AppendTo(r.text); return false }, false)
	}
	return c
}

// sep adds the separator before every value except the first.
func (r *Record) sep() {
	if len(r.text) > 0 {
		r.text = append(r.text, r.between...)
	}
}

// Append appends the field's values in r as text, with between as the
// separator. Without values it appends nothing.
func (c *Column) Append(to []byte, r *Record, between string) []byte {
	r.scratch, r.text, r.between = r.scratch[:0], r.text[:0], between
	c.run(r)
	return append(to, r.text...)
}

func (f *Field) appendUint(to []byte, v uint64) []byte {
	if f.Kind == Bool {
		return strconv.AppendUint(to, v, 10)
	}
	if f.Hex {
		return AppendHex(to, v, f.Bits)
	}
	return strconv.AppendUint(to, v, 10)
}

func (f *Field) appendInt(to []byte, v int64) []byte {
	switch {
	case f.Kind == Duration || f.Seconds:
		return appendSeconds(to, v)
	case f.Kind == Time:
		return appendTime(to, v)
	}
	return strconv.AppendInt(to, v, 10)
}

func (f *Field) appendBytes(to, v []byte) []byte {
	switch {
	case f.Kind == Text:
		return append(to, v...)
	case f.Colons:
		for i := range v {
			if i > 0 {
				to = append(to, ':')
			}
			to = appendHex(to, v[i:i+1])
		}
		return to
	}
	return appendHex(to, v)
}

func appendFloat(to []byte, v float64) []byte { return strconv.AppendFloat(to, v, 'g', -1, 64) }

// Is reports whether a decoded field has this name.
func (f *Field) Is(s *dissect.FieldSpec) bool {
	for _, x := range f.Specs {
		if x == s {
			return true
		}
	}
	return false
}

// AppendValue appends the value of a decoded field as columns print it: without
// units and words of enumerations, and bytes in hexadecimal.
func AppendValue(to []byte, d *dissect.Field) []byte {
	switch d.Spec.Kind {
	case dissect.KindInt:
		return strconv.AppendInt(to, int64(d.Uint), 10)
	case dissect.KindFloat:
		return appendFloat(to, math.Float64frombits(d.Uint))
	case dissect.KindBytes:
		return appendHex(to, d.Bytes)
	case dissect.KindText:
		return append(to, d.Bytes...)
	case dissect.KindGroup:
		return append(to, '1')
	case dissect.KindAddr:
		a, _ := netip.AddrFromSlice(d.Bytes)
		return a.AppendTo(to)
	case dissect.KindUint, dissect.KindBool:
	}
	if d.Spec.Hex {
		return AppendHex(to, d.Uint, int(d.Bits))
	}
	return strconv.AppendUint(to, d.Uint, 10)
}

// AppendHex appends v as 0x and the digits of a number of that many bits.
func AppendHex(to []byte, v uint64, bits int) []byte {
	to = append(to, "0x"...)
	for n := (bits + 3) / 4; n > 1 && (n > 16 || v>>(4*(n-1)) == 0); n-- {
		if n <= 16 {
			to = append(to, '0')
		}
	}
	return strconv.AppendUint(to, v, 16)
}

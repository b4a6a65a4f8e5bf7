package filter

import (
	"math"
	"net/netip"
	"strconv"

	"github.com/ackscope/ackscope/dissect"
)

// Needs says what a filter or a field asks of the reader of the capture.
type Needs uint8

const (
	NeedFlow     Needs = 1 << iota // the packet's flow and its protocol
	NeedFields                     // the decoded fields
	NeedEvents                     // events
	NeedMessages                   // the lives of messages
	NeedFindings                   // anomalies
	NeedState                      // the sides' figures at the packet
)

// Field is a name that filters know, with its documentation.
type Field struct {
	Name  string
	Kind  Kind
	Unit  string // "bytes", "ms"; empty for none
	Doc   string // one sentence
	Hex   bool
	Words []string          // the closed list of its values; nil for none
	Of    *dissect.Protocol // whose decoded field it is; nil for the fields of every capture

	needs   Needs
	enum    map[uint64]string
	present predicate // of headings; nil for fields with values
	specs   []*dissect.FieldSpec
	values
	bits    int  // width of a number in hexadecimal
	seconds bool // a Time that is shown in seconds since 1970
	colons  bool // bytes that are shown as aa:bb:cc
}

// values holds the one source that fits the kind: u for Uint and Bool, i for
// Int, Duration and Time, f for Float, b for Bytes and Text, a for Address.
type values struct {
	u source[uint64]
	i source[int64]
	f source[float64]
	b source[[]byte]
	a source[netip.Addr]
	// s is a quicker way to ask for texts that are the program's own words, and
	// bare one to ask whether there is a value; nil for none.
	s    source[string]
	bare predicate
	// in4 is a quicker way to ask an IPv4 field for a network, since that is what
	// most filters do; nil for others.
	in4 func(network4, bool) predicate
}

// network4 is a test for an IPv4 address: whether it lies in a network, or not.
type network4 struct {
	mask, want uint32
	outside    bool
}

func (n network4) passes(a uint32) bool { return (a&n.mask == n.want) != n.outside }

// Needs says what the field asks of the reader.
func (f *Field) Needs() Needs { return f.needs }

func (v *values) exist() predicate {
	switch {
	case v.bare != nil:
		return v.bare
	case v.u != nil:
		return v.u(anything, false)
	case v.i != nil:
		return v.i(anything, false)
	case v.f != nil:
		return v.f(anything, false)
	case v.s != nil:
		return v.s(anything, false)
	case v.b != nil:
		return v.b(anything, false)
	default:
		return v.a(anything, false)
	}
}

// Column prepares a field for Append: what `-T fields -e NAME` prints.
type Column struct {
	Field *Field
	run   predicate
}

// Column gives the field as a column of a listing.
func (f *Field) Column() *Column {
	c := &Column{Field: f}
	switch {
	case len(f.specs) > 0 && f.Kind != Heading:
		c.run = func(r *Record) bool {
			for i := range r.Dissection().Fields {
				if d := &r.dissection.Fields[i]; f.is(d.Spec) {
					r.sep()
					r.text = AppendValue(r.text, d)
				}
			}
			return false
		}
	case f.present != nil:
		c.run = func(r *Record) bool {
			if f.present(r) {
				r.text = append(r.text, '1')
			}
			return false
		}
	case f.u != nil:
		c.run = f.u(func(r *Record, v uint64) bool { r.sep(); r.text = f.appendUint(r.text, v); return false }, false)
	case f.i != nil:
		c.run = f.i(func(r *Record, v int64) bool { r.sep(); r.text = f.appendInt(r.text, v); return false }, false)
	case f.f != nil:
		c.run = f.f(func(r *Record, v float64) bool { r.sep(); r.text = appendFloat(r.text, v); return false }, false)
	case f.b != nil:
		c.run = f.b(func(r *Record, v []byte) bool { r.sep(); r.text = f.appendBytes(r.text, v); return false }, false)
	default:
		c.run = f.a(func(r *Record, v netip.Addr) bool { r.sep(); r.text = v.AppendTo(r.text); return false }, false)
	}
	return c
}

// sep puts the separator before every value but the first.
func (r *Record) sep() {
	if len(r.text) > 0 {
		r.text = append(r.text, r.between...)
	}
}

// Append adds the field's values in r as text, with between between several; no
// value adds nothing.
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
		return AppendHex(to, v, f.bits)
	}
	return strconv.AppendUint(to, v, 10)
}

func (f *Field) appendInt(to []byte, v int64) []byte {
	switch {
	case f.Kind == Duration || f.seconds:
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
	case f.colons:
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

// is reports whether a decoded field is of this name.
func (f *Field) is(s *dissect.FieldSpec) bool {
	for _, x := range f.specs {
		if x == s {
			return true
		}
	}
	return false
}

// AppendValue renders the value of a decoded field as columns show it: without
// unit or words of an enumeration, bytes in hexadecimal.
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

// AppendHex renders v as 0x and the digits that bits of width take.
func AppendHex(to []byte, v uint64, bits int) []byte {
	to = append(to, "0x"...)
	for n := (bits + 3) / 4; n > 1 && (n > 16 || v>>(4*(n-1)) == 0); n-- {
		if n <= 16 {
			to = append(to, '0')
		}
	}
	return strconv.AppendUint(to, v, 16)
}

// decoded makes the field of dissected specs of one name and kind.
func decoded(p *dissect.Protocol, s *dissect.FieldSpec) *Field {
	f := &Field{Name: s.Name, Doc: s.Doc, Unit: s.Unit, Hex: s.Hex, Of: p, needs: NeedFlow | NeedFields, enum: s.Enum, specs: []*dissect.FieldSpec{s}}
	if s.Enum != nil {
		f.Words = sortedWords(s.Enum)
	}
	switch s.Kind {
	case dissect.KindUint, dissect.KindBool:
		f.Kind = Uint
		if s.Kind == dissect.KindBool {
			f.Kind = Bool
		}
		f.u = dissectedUint(f)
	case dissect.KindInt:
		f.Kind = Int
		f.i = dissected(f, func(d *dissect.Field) int64 { return int64(d.Uint) })
	case dissect.KindFloat:
		f.Kind = Float
		f.f = dissected(f, func(d *dissect.Field) float64 { return math.Float64frombits(d.Uint) })
	case dissect.KindBytes, dissect.KindText:
		f.Kind = Bytes
		if s.Kind == dissect.KindText {
			f.Kind = Text
		}
		f.b = dissected(f, func(d *dissect.Field) []byte { return d.Bytes })
	case dissect.KindAddr:
		f.Kind = Address
		f.a = dissected(f, func(d *dissect.Field) netip.Addr { a, _ := netip.AddrFromSlice(d.Bytes); return a })
	case dissect.KindGroup:
		f.present = dissected(f, func(*dissect.Field) bool { return true })(anything, false)
	}
	return f
}

// dissectedUint is dissected for numbers, which most filters ask for.
func dissectedUint(f *Field) source[uint64] {
	general := dissected(f, func(d *dissect.Field) uint64 { return d.Uint })
	return func(pass test[uint64], all bool) predicate {
		if f.Of == nil || len(f.specs) != 1 || all {
			return general(pass, all)
		}
		spec, of := f.specs[0], f.Of
		return func(r *Record) bool {
			if r.Protocol != of {
				return false
			}
			fields := r.Dissection().Fields
			for i := range fields {
				if d := &fields[i]; d.Spec == spec && pass(r, d.Uint) {
					return true
				}
			}
			return false
		}
	}
}

// dissected makes the source of a decoded field. A packet of another protocol
// is not taken apart for it.
func dissected[T any](f *Field, value func(*dissect.Field) T) source[T] {
	return func(pass test[T], all bool) predicate {
		if f.Of != nil && len(f.specs) == 1 && !all {
			spec, of := f.specs[0], f.Of
			return func(r *Record) bool {
				if r.Protocol != of {
					return false
				}
				fields := r.Dissection().Fields
				for i := range fields {
					if fields[i].Spec == spec && pass(r, value(&fields[i])) {
						return true
					}
				}
				return false
			}
		}
		return func(r *Record) bool {
			if r.Protocol == nil || f.Of != nil && r.Protocol != f.Of {
				return false
			}
			found := false
			fields := r.Dissection().Fields
			for i := range fields {
				if f.is(fields[i].Spec) {
					found = true
					if pass(r, value(&fields[i])) != all {
						return !all
					}
				}
			}
			return found && all
		}
	}
}

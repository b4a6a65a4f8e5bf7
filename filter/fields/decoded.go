package fields

import (
	"math"
	"net/netip"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
)

// decoded returns the field of dissected specs of one name and kind.
func decoded(p *dissect.Protocol, s *dissect.FieldSpec) *filter.Field {
	f := &filter.Field{
		Name: s.Name, Doc: s.Doc, Unit: s.Unit, Hex: s.Hex, Of: p,
		Needs: filter.NeedFlow | filter.NeedFields, Enum: s.Enum, Specs: []*dissect.FieldSpec{s},
	}
	if s.Enum != nil {
		f.Words = sortedWords(s.Enum)
	}
	switch s.Kind {
	case dissect.KindUint, dissect.KindBool:
		f.Kind = filter.Uint
		if s.Kind == dissect.KindBool {
			f.Kind = filter.Bool
		}
		f.Uint = dissectedUint(f)
	case dissect.KindInt:
		f.Kind = filter.Int
		f.Int = dissected(f, func(d *dissect.Field) int64 { return int64(d.Uint) })
	case dissect.KindFloat:
		f.Kind = filter.Float
		f.Float = dissected(f, func(d *dissect.Field) float64 { return math.Float64frombits(d.Uint) })
	case dissect.KindBytes, dissect.KindText:
		f.Kind = filter.Bytes
		if s.Kind == dissect.KindText {
			f.Kind = filter.Text
		}
		f.Bytes = dissected(f, func(d *dissect.Field) []byte { return d.Bytes })
	case dissect.KindAddr:
		f.Kind = filter.Address
		f.Address = dissected(f, func(d *dissect.Field) netip.Addr { a, _ := netip.AddrFromSlice(d.Bytes); return a })
	case dissect.KindGroup:
		f.Present = dissected(f, func(*dissect.Field) bool { return true })(filter.Anything, false)
	}
	return f
}

// dissectedUint is a faster version of dissected for numbers, the most frequent
// case.
func dissectedUint(f *filter.Field) filter.Source[uint64] {
	general := dissected(f, func(d *dissect.Field) uint64 { return d.Uint })
	return func(pass filter.Test[uint64], all bool) filter.Predicate {
		if f.Of == nil || len(f.Specs) != 1 || all {
			return general(pass, all)
		}
		spec, of := f.Specs[0], f.Of
		return func(r *filter.Record) bool {
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

// dissected returns the source of a decoded field. It does not dissect packets
// of other protocols.
func dissected[T any](f *filter.Field, value func(*dissect.Field) T) filter.Source[T] {
	return func(pass filter.Test[T], all bool) filter.Predicate {
		if f.Of != nil && len(f.Specs) == 1 && !all {
			spec, of := f.Specs[0], f.Of
			return func(r *filter.Record) bool {
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
		return func(r *filter.Record) bool {
			if r.Protocol == nil || f.Of != nil && r.Protocol != f.Of {
				return false
			}
			found := false
			fields := r.Dissection().Fields
			for i := range fields {
				if f.Is(fields[i].Spec) {
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

// sortedWords returns the words of an enumeration, in order of value.
func sortedWords(enum map[uint64]string) []string {
	keys := make([]uint64, 0, len(enum))
	for k := range enum {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = enum[k]
	}
	return out
}

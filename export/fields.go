package export

import (
	"math"
	"slices"
	"strconv"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
)

// dissection returns the packet's fields, and how many of them belong to the
// datagram itself. It returns nil for a packet of no protocol.
func (r *PacketRow) dissection() (*dissect.Dissection, int) {
	x := &r.Reading.Record
	if x.Protocol == nil || x.Decode == nil {
		return nil, 0
	}
	d := x.Dissection()
	return d, r.Reading.Own // set by the dissection
}

// grouping groups fields by name.
type grouping struct {
	heads, tails []int
	chain        []int32
	byName       map[string]int
}

// fewFields is the largest number of names for which a linear search is faster
// than a map.
const fewFields = 24

// group links the fields of one name. The list heads has the first field of
// each name, in order. The list chain leads from each field to the next of its
// name; 0 marks the last.
func (s *grouping) group(list []dissect.Field) {
	s.heads, s.chain, s.tails = s.heads[:0], append(s.chain[:0], make([]int32, len(list))...), s.tails[:0]
	clear(s.byName)
	for i := range list {
		if list[i].Spec.Kind == dissect.KindGroup {
			continue
		}
		name := list[i].Spec.Name
		k, ok := s.byName[name]
		if len(list) <= fewFields {
			k = slices.IndexFunc(s.heads, func(h int) bool { return list[h].Spec == list[i].Spec || list[h].Spec.Name == name })
			ok = k >= 0
		}
		if ok {
			s.chain[s.tails[k]] = int32(i)
			s.tails[k] = i
			continue
		}
		if len(list) > fewFields {
			if s.byName == nil {
				s.byName = map[string]int{}
			}
			s.byName[name] = len(s.heads)
		}
		s.heads, s.tails = append(s.heads, i), append(s.tails, i)
	}
}

// appendFields appends the decoded fields by name. A name that occurs several
// times has a list.
func (s *grouping) appendFields(b []byte, list []dissect.Field) []byte {
	s.group(list)
	b = append(b, '{')
	for n, i := range s.heads {
		f := &list[i]
		if n > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), f.Spec.Name...), '"', ':')
		if s.chain[i] == 0 {
			b = AppendValue(b, f)
			continue
		}
		b = append(b, '[')
		for j := i; ; j = int(s.chain[j]) {
			b = AppendValue(b, &list[j])
			if s.chain[j] == 0 {
				break
			}
			b = append(b, ',')
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendTree appends every field with its label and position.
func appendTree(b []byte, list []dissect.Field) []byte {
	b = append(b, '[')
	for i := range list {
		f := &list[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(append(b, `{"name":`...), f.Spec.Name)
		b = AppendString(append(b, `,"label":`...), f.Spec.Label)
		b = strconv.AppendUint(append(b, `,"depth":`...), uint64(f.Depth), 10)
		if f.Bits > 0 {
			b = strconv.AppendUint(append(b, `,"bit":`...), uint64(f.Bit), 10)
			b = strconv.AppendUint(append(b, `,"bits":`...), uint64(f.Bits), 10)
		}
		if f.Spec.Kind != dissect.KindGroup {
			b = AppendValue(append(b, `,"value":`...), f)
		}
		if f.Note != "" {
			b = AppendString(append(b, `,"note":`...), f.Note)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// AppendValue appends a field's value as JSON: numbers in full, words of
// enumerations, bytes as hexadecimal text, and NaN and infinities as text.
func AppendValue(to []byte, f *dissect.Field) []byte {
	switch f.Spec.Kind {
	case dissect.KindUint:
		if word, ok := f.Spec.Enum[f.Uint]; ok {
			return AppendString(to, word)
		}
		return strconv.AppendUint(to, f.Uint, 10)
	case dissect.KindInt:
		return strconv.AppendInt(to, int64(f.Uint), 10)
	case dissect.KindBool:
		return strconv.AppendBool(to, f.Uint != 0)
	case dissect.KindFloat:
		v := math.Float64frombits(f.Uint)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return AppendString(to, strconv.FormatFloat(v, 'g', -1, 64))
		}
		return strconv.AppendFloat(to, v, 'g', -1, 64)
	case dissect.KindBytes:
		return AppendHex(to, f.Bytes)
	case dissect.KindText:
		return AppendString(to, f.Bytes)
	case dissect.KindAddr:
		return append(filter.AppendValue(append(to, '"'), f), '"')
	case dissect.KindGroup:
	}
	return append(to, "null"...)
}

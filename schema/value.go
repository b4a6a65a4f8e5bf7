package schema

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/ackscope/ackscope/printable"
)

// Record is the values of a body in the order of its fields. A value is a bool,
// uint64, int64, float32, float64, string, []byte, []any, Missing or a Record.
type Record []Member

// Member is one value with its field's name.
type Member struct {
	Name  string
	Value any
}

// Missing replaces an array whose items the sender's library has omitted from
// the wire. It is the number of items, or -1 if that is not known either. In
// JSON it is null.
type Missing int

// Get returns the value of a field.
func (r Record) Get(name string) (any, bool) {
	for _, m := range r {
		if m.Name == name {
			return m.Value, true
		}
	}
	return nil, false
}

// Values returns the values without their names.
func (r Record) Values() []any {
	out := make([]any, len(r))
	for i, m := range r {
		out[i] = m.Value
	}
	return out
}

// MarshalJSON returns an object with the fields in order. Bytes are hexadecimal
// text. Infinite numbers and NaN are text.
func (r Record) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range r {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(m.Name)
		if err != nil {
			return nil, err
		}
		out = append(printable.AppendJSON(out, name), ':')
		if out, err = appendJSON(out, m.Value); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendJSON(out []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return append(append(append(out, '"'), hex.EncodeToString(v)...), '"'), nil
	case Missing:
		return append(out, "null"...), nil
	case float32:
		return appendFloat(out, float64(v), 32), nil
	case float64:
		return appendFloat(out, v, 64), nil
	case []any:
		out = append(out, '[')
		for i, one := range v {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = appendJSON(out, one); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	}
	b, err := json.Marshal(v)
	return printable.AppendJSON(out, b), err
}

func appendFloat(out []byte, v float64, size int) []byte {
	switch {
	case math.IsNaN(v):
		return append(out, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(out, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(out, `"-Infinity"`...)
	}
	return strconv.AppendFloat(out, v, 'g', -1, size)
}

// lookup finds a value by name in the values to write.
func lookup(in any, name string) (any, bool) {
	switch in := in.(type) {
	case Record:
		return in.Get(name)
	case map[string]any:
		v, ok := in[name]
		return v, ok
	}
	return nil, false
}

// take converts a value to write into w.word or w.bytes.
func (w *walker) take(f *Field, in any) (err error) {
	switch f.kind {
	case kindBool:
		b, ok := in.(bool)
		if !ok {
			return fmt.Errorf("expected a bool, found %T", in)
		}
		w.word = uint64(truth(b))
	case kindFloat, kindDouble:
		if v, ok := in.(float32); ok && f.kind == kindFloat {
			w.word = uint64(math.Float32bits(v)) // unchanged: a wider type would change a NaN
			return nil
		}
		v, err := toFloat(in)
		if err != nil {
			return err
		}
		if w.word = math.Float64bits(v); f.kind == kindFloat {
			w.word = uint64(math.Float32bits(float32(v)))
		}
	case kindText:
		s, ok := in.(string)
		if !ok {
			return fmt.Errorf("expected text, found %T", in)
		}
		if w.bytes = []byte(s); int64(len(s)) > *f.Max {
			return fmt.Errorf("expected at most %d bytes, found %d", *f.Max, len(s))
		}
	case kindBytes:
		w.bytes, err = toBytes(in)
		return err
	default:
		if w.word, err = toWord(in); err != nil {
			return err
		}
		if f.kind == kindRange && (int64(w.word) < *f.Min || int64(w.word) > *f.Max) {
			return fmt.Errorf("expected %d to %d, found %v", *f.Min, *f.Max, in)
		}
		return w.fits(f, in)
	}
	return nil
}

// fits checks that the width of a word does not cut its value.
func (w *walker) fits(f *Field, in any) error {
	width := f.width
	if f.kind != kindWord {
		return nil
	}
	if f.bits != nil {
		width = int(min(max(f.bits.eval(w.slots), 0), 64))
	}
	if width >= 64 {
		return nil
	}
	if f.signed {
		if v := int64(w.word); v < -1<<(width-1) || v >= 1<<(width-1) {
			return fmt.Errorf("%v does not fit %d bits", in, width)
		}
	} else if w.word>>width != 0 {
		return fmt.Errorf("%v does not fit %d bits", in, width)
	}
	return nil
}

func toWord(in any) (uint64, error) {
	switch v := in.(type) {
	case uint64:
		return v, nil
	case int64:
		return uint64(v), nil
	case int:
		return uint64(int64(v)), nil
	case uint32:
		return uint64(v), nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return uint64(int64(v)), nil
		}
	case json.Number:
		if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return uint64(i), nil
		}
		if u, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return u, nil
		}
	}
	return 0, fmt.Errorf("expected an integer, found %v (%T)", in, in)
}

func toFloat(in any) (float64, error) {
	switch v := in.(type) {
	case float64:
		return v, nil
	case float32:
		return float64(v), nil
	case json.Number:
		return v.Float64()
	case string:
		switch v {
		case "NaN":
			return math.NaN(), nil
		case "Infinity":
			return math.Inf(1), nil
		case "-Infinity":
			return math.Inf(-1), nil
		}
	case int, int64, uint64:
		w, err := toWord(v)
		return float64(int64(w)), err
	}
	return 0, fmt.Errorf("expected a number, found %v (%T)", in, in)
}

func toBytes(in any) ([]byte, error) {
	switch v := in.(type) {
	case []byte:
		return v, nil
	case string:
		b, err := hex.DecodeString(v)
		if err != nil {
			return nil, errors.New("expected hexadecimal text")
		}
		return b, nil
	}
	return nil, fmt.Errorf("expected bytes or hexadecimal text, found %T", in)
}

package schema

import (
	"fmt"
	"strconv"

	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/wire/bits"
)

// compiler resolves the types and expressions of one body.
type compiler struct {
	coding Coding
	slots  int
	index  int
}

// scope is the set of fields that an expression can name: earlier fields of its
// own list and of the enclosing lists.
type scope struct {
	outer *scope
	names map[string]int
}

func (s *scope) find(name string) (slot int, ok bool) {
	for ; s != nil; s = s.outer {
		if slot, ok := s.names[name]; ok {
			return slot, true
		}
	}
	return 0, false
}

func (c *compiler) fields(path string, fields []*Field, outer *scope, depth int) error {
	if depth > mostDepth {
		return &Error{path, fmt.Sprintf("fields are nested more than %d deep", mostDepth)}
	}
	s := &scope{outer, map[string]int{}}
	seen := map[string]bool{}
	for i, f := range fields {
		at := fmt.Sprintf("%s[%d]", path, i)
		if f == nil {
			return &Error{at, "is empty: a field has a type"}
		}
		if f.Name != "" && seen[f.Name] {
			return &Error{at + ".name", fmt.Sprintf("%q is the name of an earlier field", f.Name)}
		}
		seen[f.Name] = true
		if err := c.field(at, f, s, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) field(path string, f *Field, s *scope, depth int) error {
	f.index = c.index
	if c.index++; c.index > MostFields {
		return &Error{path, fmt.Sprintf("expected at most %d fields in a schema, found more", MostFields)}
	}
	f.slot = c.slots
	c.slots++
	if err := printable.Name(f.Name); err != nil {
		return &Error{path + ".name", err.Error()}
	}
	var err error
	if f.cond, err = c.expr(path+".if", f.If, s); err != nil {
		return err
	}
	if err := c.kind(path, f); err != nil {
		return err
	}
	if err := c.settings(path, f, s); err != nil {
		return err
	}
	if f.Name == "" && f.kind != kindAlign && f.kind != kindZeros && s.names != nil {
		return &Error{path, "has no name"}
	}
	switch f.kind {
	case kindArray:
		if (f.Item == nil) == (len(f.Fields) == 0) {
			return &Error{path, "an array has either an item or fields"}
		}
		if f.Item != nil {
			f.Item.item = true
			name := f.Item.Type
			if is, times := c.coding.Alias(name); times == 1 {
				name = is
			}
			f.lost, f.noCount = c.coding.Lost(name)
			return c.field(path+".item", f.Item, &scope{outer: s}, depth+1)
		}
		return c.fields(path+".fields", f.Fields, s, depth+1)
	case kindGroup:
		if len(f.Fields) == 0 {
			return &Error{path, "a group has fields"}
		}
		return c.fields(path+".fields", f.Fields, s, depth+1)
	case kindWord, kindRange, kindNumber, kindBool:
		if f.Name != "" && s.names != nil {
			s.names[f.Name] = f.slot
		}
	}
	if len(f.Fields) > 0 || f.Item != nil {
		return &Error{path, fmt.Sprintf("type %s has no fields and no item: only array and group do", f.Type)}
	}
	return nil
}

// kind resolves the name of the type.
func (c *compiler) kind(path string, f *Field) error {
	f.signed = false
	name := f.Type
	if is, times := c.coding.Alias(name); times > 1 {
		f.kind, f.times, f.Count, f.Item = kindArray, times, strconv.Itoa(times), &Field{Type: is}
		return nil
	} else if is != "" {
		name = is
	}
	if w, ok := words[name]; ok {
		f.kind, f.width, f.signed = kindWord, w.width, w.signed
		return nil
	}
	switch name {
	case "bits":
		f.kind = kindWord
	case "int":
		f.kind = kindRange
	case "float":
		f.kind = kindFloat
	case "double":
		f.kind = kindDouble
	case "bool":
		f.kind = kindBool
	case "string":
		f.kind = kindText
	case "bytes":
		f.kind = kindBytes
	case "array":
		f.kind = kindArray
	case "group":
		f.kind = kindGroup
	case "align":
		f.kind = kindAlign
	case "zeros":
		f.kind = kindZeros
	case "":
		return &Error{path, "has no type"}
	default:
		code, signed, ok := c.coding.Number(f.Type)
		if !ok {
			return &Error{path + ".type", fmt.Sprintf("unknown type %q", f.Type)}
		}
		f.kind, f.code, f.signed = kindNumber, code, signed
	}
	return nil
}

// settings checks that a field has the settings that its type needs, and no
// others.
func (c *compiler) settings(path string, f *Field, s *scope) (err error) {
	takesBits := f.Type == "bits" || f.kind == kindZeros
	switch {
	case takesBits && f.Bits == "":
		return &Error{path, fmt.Sprintf("type %s needs bits", f.Type)}
	case !takesBits && f.Bits != "":
		return &Error{path + ".bits", fmt.Sprintf("type %s takes no bits", f.Type)}
	}
	if f.bits, err = c.expr(path+".bits", f.Bits, s); err != nil {
		return err
	}
	if n, ok := f.bits.(number); ok && (n < 0 || f.kind == kindWord && n > 64 || n > 8*mostCount) {
		return &Error{path + ".bits", fmt.Sprintf("expected 0 to 64, found %d", n)}
	}
	counted := f.kind == kindArray || f.kind == kindBytes
	if f.Count != "" && !counted {
		return &Error{path + ".count", fmt.Sprintf("type %s takes no count", f.Type)}
	}
	if f.count, err = c.expr(path+".count", f.Count, s); err != nil {
		return err
	}
	if most := c.coding.MostCount(); most > 0 && f.Max == nil && (f.kind == kindText || counted && f.Count == "") {
		f.Max = &most
	}
	switch {
	case f.kind == kindRange:
		if f.Min == nil || f.Max == nil {
			return &Error{path, "type int needs min and max"}
		}
		if *f.Min > *f.Max {
			return &Error{path + ".min", fmt.Sprintf("%d is above max, %d", *f.Min, *f.Max)}
		}
		f.width, f.signed = bits.Required(uint64(*f.Min), uint64(*f.Max)), *f.Min < 0
	case f.kind == kindText:
		if f.Max == nil || *f.Max < 1 || *f.Max > mostCount || f.Min != nil {
			return &Error{path, fmt.Sprintf("type string needs max, 1 to %d bytes, and takes no min", mostCount)}
		}
	case counted && f.Count == "":
		if f.Max == nil || *f.Max < 0 || *f.Max > mostCount {
			return &Error{path, fmt.Sprintf("type %s needs count, or max of 0 to %d", f.Type, mostCount)}
		}
		if f.Min == nil {
			f.Min = new(int64)
		}
		if *f.Min < 0 || *f.Min > *f.Max {
			return &Error{path + ".min", fmt.Sprintf("expected 0 to %d, found %d", *f.Max, *f.Min)}
		}
	case f.Min != nil || f.Max != nil:
		return &Error{path, fmt.Sprintf("type %s takes no min and max here", f.Type)}
	}
	return nil
}

// expr compiles a setting that may be an expression. It returns nil for an
// empty setting.
func (c *compiler) expr(path, text string, s *scope) (expr, error) {
	if text == "" {
		return nil, nil
	}
	p := parser{text: text, scope: s}
	e, err := p.parse()
	if err != nil {
		return nil, &Error{path, strconv.Quote(text) + ": " + err.Error()}
	}
	return e, nil
}

package export

// JSONSchema returns the JSON Schema (draft 2020-12) of a table's rows, as
// `--json` and `export jsonl` print them.
func (s *Schema) JSONSchema() map[string]any {
	o := map[string]any{}
	if s.OneOf == nil {
		o = objectSchema(s.Columns)
	} else {
		var kinds []map[string]any
		for _, kind := range s.OneOf {
			x := objectSchema(kind.Columns)
			x["title"], x["description"] = kind.Name, kind.Doc
			kinds = append(kinds, x)
		}
		o["oneOf"] = kinds
	}
	o["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	o["$id"] = "https://github.com/ackscope/ackscope/schemas/" + s.Name + ".json"
	o["title"] = s.Name
	o["description"] = s.Doc
	return o
}

func objectSchema(columns []Column) map[string]any {
	properties, required := map[string]any{}, []string{}
	for i := range columns {
		c := &columns[i]
		properties[c.Name] = c.jsonSchema()
		if c.Absent <= Null {
			required = append(required, c.Name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// jsonSchema returns the JSON Schema of a column's value.
func (c *Column) jsonSchema() map[string]any {
	o := map[string]any{}
	kind := func(word string) {
		o["type"] = word
		if c.Absent == Null || c.Absent == Either {
			o["type"] = []string{word, "null"}
		}
	}
	list := func(items map[string]any) {
		kind("array")
		o["items"] = items
	}
	switch c.Type {
	case Uint:
		kind("integer")
		o["minimum"] = 0
	case Int:
		kind("integer")
	case Float:
		kind("number")
	case Bool:
		kind("boolean")
	case Text:
		kind("string")
	case Time:
		kind("string")
		o["format"] = "date-time"
	case Uints:
		list(map[string]any{"type": "integer", "minimum": 0})
	case Floats:
		list(map[string]any{"type": "number"})
	case Texts:
		list(map[string]any{"type": "string"})
	case JSON:
		if c.Shape != nil {
			o = c.Shape.jsonSchema()
		}
	}
	if len(c.Words) > 0 {
		words := []any{}
		for _, w := range c.Words {
			words = append(words, w)
		}
		if c.Absent == Null || c.Absent == Either {
			words = append(words, nil)
		}
		o["enum"] = words
	}
	if c.Doc == "" {
		return o // the item of a list
	}
	doc := c.Doc
	if c.Unit != "" {
		doc += " In " + c.Unit + "."
	}
	o["description"] = doc
	return o
}

func (s *Shape) jsonSchema() map[string]any {
	o := map[string]any{"type": "object"}
	switch {
	case s.Item != nil:
		o = s.Item.jsonSchema()
	case s.Columns != nil:
		o = objectSchema(s.Columns)
	}
	if s.List {
		return map[string]any{"type": "array", "items": o}
	}
	return o
}

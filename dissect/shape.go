package dissect

import "github.com/ackscope/ackscope/schema"

// KindOfShape returns the kind of field that shows a schema's value.
func KindOfShape(s schema.Shape) FieldKind {
	switch s {
	case schema.Int:
		return KindInt
	case schema.Bool:
		return KindBool
	case schema.Float, schema.Double:
		return KindFloat
	case schema.Text:
		return KindText
	case schema.Bytes:
		return KindBytes
	case schema.Group:
		return KindGroup
	}
	return KindUint
}

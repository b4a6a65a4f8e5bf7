package gaffer

import (
	"github.com/ackscope/ackscope/schema"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// sampleBodies returns the bodies of packets that the series' sample programs send, for
// the built-in profile that reads them. It returns nil if there are none.
func sampleBodies(profile string) *schema.Schema {
	if profile != wire.ArticleFragments {
		return nil
	}
	of := func(v int64) *int64 { return &v }
	float := func(name string) *schema.Field { return &schema.Field{Name: name, Type: "float"} }
	vector := func(name, condition string) *schema.Field {
		return &schema.Field{
			Name: name, Type: "group", If: condition,
			Fields: []*schema.Field{float("x"), float("y"), float("z")},
		}
	}
	return &schema.Schema{Packets: map[uint32]*schema.Body{
		1: {Name: "A", Doc: "Three small integers.", Fields: []*schema.Field{
			{Name: "a", Type: "int", Min: of(-10), Max: of(10)},
			{Name: "b", Type: "int", Min: of(-20), Max: of(20)},
			{Name: "c", Type: "int", Min: of(-30), Max: of(30)},
		}},
		2: {Name: "B", Doc: "A run of bytes, large enough to be split.", Fields: []*schema.Field{
			{Name: "items", Type: "array", Min: of(0), Max: of(16384), Item: &schema.Field{Type: "bits", Bits: "8"}},
		}},
		3: {Name: "C", Doc: "A body in motion, or at rest.", Fields: []*schema.Field{
			vector("position", ""),
			{Name: "at_rest", Type: "bool"},
			vector("velocity", "!at_rest"),
		}},
	}}
}

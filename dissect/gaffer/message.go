package gaffer

import "github.com/ackscope/ackscope/schema"

// Body gives the body of a type, for who writes messages; nil where the schema
// does not know it.
func (b *bodies) Body(kind uint32) *schema.Body { return b.byType[kind] }

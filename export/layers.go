package export

import (
	"strconv"

	"github.com/ackscope/ackscope/dissect/stack"
	"github.com/ackscope/ackscope/show"
)

// layerFieldShape is one field of a layer.
var layerFieldShape = []Column{
	{Name: "name", Type: Text, Doc: "The field, as Wireshark names it, where it has a name for it."},
	{Name: "label", Type: Text, Doc: "The field, as a tree shows it."},
	{Name: "depth", Type: Uint, Doc: "Its depth below its layer, from 0."},
	{
		Name: "bit", Type: Uint, Unit: "bits", Absent: Omitted,
		Doc: "Where it begins in the frame, the high bit of a byte first; left out where no place is known.",
	},
	{Name: "bits", Type: Uint, Unit: "bits", Absent: Omitted, Doc: "How wide it is."},
	{Name: "value", Type: JSON, Absent: Omitted, Doc: "Its value."},
	{Name: "word", Type: Text, Absent: Omitted, Doc: "What its number stands for."},
}

// layerShape is one layer. A packet that it quotes has layers of the same shape.
var layerShape = []Column{
	{Name: "layer", Type: Text, Doc: "The layer, as gopacket names it."},
	{Name: "offset", Type: Uint, Unit: "bytes", Doc: "Where it begins in the frame."},
	{Name: "length", Type: Uint, Unit: "bytes", Doc: "How long it is, without what it carries."},
	{Name: "title", Type: Text, Doc: "The layer in one line."},
	{Name: "by_port", Type: Bool, Absent: Omitted, Doc: "True where nothing but a port number speaks for it."},
	{
		Name: "fields", Type: JSON, Absent: Omitted, Shape: &Shape{List: true, Columns: layerFieldShape},
		Doc: "Its fields with their places.",
	},
	{Name: "quoted", Type: JSON, Absent: Omitted, Doc: "The layers of the packet that an error of ICMP quotes."},
}

// layers sets the cell of the frame's layers, or of those over the joined bytes
// that it completes.
func (r *PacketRow) layers(c *Cell, joined bool) {
	if p := r.Reading.Record.Packet; !r.Tree || p == nil || joined && p.Joined == nil && !r.Source.Message {
		return
	}
	s, whole := show.StackOf(r.Reading, r.Source)
	if joined {
		s = whole
	}
	if s != nil && len(s.Layers) > 0 {
		c.bytes(appendLayers(c.Bytes[:0], s))
	}
}

func appendLayers(b []byte, s *stack.Stack) []byte {
	b = append(b, '[')
	for i := range s.Layers {
		l := &s.Layers[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(append(b, `{"layer":`...), l.LayerType().String())
		b = strconv.AppendInt(append(b, `,"offset":`...), int64(l.Offset), 10)
		b = strconv.AppendInt(append(b, `,"length":`...), int64(l.Length), 10)
		b = AppendString(append(b, `,"title":`...), show.LayerTitle(l))
		if l.ByPort {
			b = append(b, `,"by_port":true`...)
		}
		if list := s.Fields(i); len(list) > 0 {
			b = appendLayerFields(append(b, `,"fields":`...), list)
		}
		if l.Quoted != nil {
			b = appendLayers(append(b, `,"quoted":`...), l.Quoted)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendLayerFields(b []byte, list []stack.Field) []byte {
	b = append(b, '[')
	for i := range list {
		f := &list[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(append(b, `{"name":`...), f.Name)
		b = AppendString(append(b, `,"label":`...), f.Label)
		b = strconv.AppendInt(append(b, `,"depth":`...), int64(f.Depth), 10)
		if f.Bits > 0 {
			b = strconv.AppendInt(append(b, `,"bit":`...), int64(f.Bit), 10)
			b = strconv.AppendInt(append(b, `,"bits":`...), int64(f.Bits), 10)
		}
		b = appendLayerValue(b, f)
		if f.Word != "" {
			b = AppendString(append(b, `,"word":`...), f.Word)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendLayerValue(b []byte, f *stack.Field) []byte {
	const key = `,"value":`
	switch f.Kind {
	case stack.Number, stack.Hex:
		return strconv.AppendUint(append(b, key...), f.Uint, 10)
	case stack.Flag:
		return strconv.AppendBool(append(b, key...), f.Uint != 0)
	case stack.Bytes:
		return AppendHex(append(b, key...), f.Bytes)
	case stack.Address:
		return append(show.AppendAddress(append(append(b, key...), '"'), f), '"')
	case stack.Text:
		return AppendString(append(b, key...), f.Text)
	case stack.Group:
	}
	return b
}

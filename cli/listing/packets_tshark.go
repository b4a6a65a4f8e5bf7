package listing

import (
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
)

// tsharkWriter prints packets like tshark's -T json and -T ek. A packet is an
// object, with a layer for each header and protocol. All values are text. A
// field with several values is a list, as with --no-duplicate-keys.
type tsharkWriter struct {
	app     *app.App
	elastic bool // -T ek: two lines per packet, for Elasticsearch
	hex     bool
	chosen  *columns // the fields of -e; none for whole layers
	layers  []tsharkLayer
	reading *filter.Reading

	buf, value []byte
	names      []string
	values     [][]string
	packets    int
}

// tsharkLayer is a header and its fields.
type tsharkLayer struct {
	name    string
	columns []*filter.Column
}

// tsharkLayers are the layers whose fields both programs know.
var tsharkLayers = strings.Fields("frame eth ieee8021ad vlan ip ipv6 udp tcp")

func newTsharkWriter(a *app.App, f *packetFlags, l *filter.Reading) (*tsharkWriter, error) {
	s := &tsharkWriter{app: a, elastic: f.format == "ek", hex: f.hex, reading: l}
	var err error
	if s.chosen, err = newColumns(a, f.fields); err != nil {
		return nil, err
	}
	for _, name := range tsharkLayers {
		l := tsharkLayer{name: name}
		for _, x := range a.Table().Fields() {
			if strings.HasPrefix(x.Name, name+".") && x.Name != "frame.file" {
				l.columns = append(l.columns, x.Column())
			}
		}
		s.layers = append(s.layers, l)
	}
	return s, nil
}

func (s *tsharkWriter) needs() filter.Needs {
	if len(s.chosen.list) == 0 {
		return filter.NeedFlow | filter.NeedFields
	}
	return s.chosen.needs
}

func (s *tsharkWriter) show(r *filter.Record, x *analyze.Record) error {
	s.buf = s.buf[:0]
	at := r.Datagram.At.Time().Local()
	index := "packets-" + at.Format("2006-01-02")
	if s.elastic {
		s.buf = append(append(append(s.buf, `{"index":{"_index":"`...), index...), `","_type":"doc"}}`...)
		s.buf = strconv.AppendInt(append(s.buf, "\n{\"timestamp\":\""...), int64(r.Datagram.At)/1e6, 10)
		s.buf = append(s.buf, `","layers":{`...)
	} else {
		head := ",\n"
		if s.packets == 0 {
			head = "[\n"
		}
		s.buf = append(append(append(append(s.buf, head...), "  {\n    \"_index\": \""...), index...),
			"\",\n    \"_type\": \"doc\",\n    \"_score\": null,\n    \"_source\": {\n      \"layers\": {"...)
	}
	s.packets++
	n := 0
	if s.hex && r.Frame != nil {
		s.raw(&n, r.Frame.Data)
	}
	if len(s.chosen.list) > 0 {
		s.chosen.take(r, x)
		for i := range s.chosen.list {
			s.value = s.chosen.append(s.value[:0], i, r, "\x00")
			s.list(&n, s.chosen.list[i].field.Name, s.parted())
		}
	} else {
		for i := range s.layers {
			s.header(&n, &s.layers[i], r)
		}
		s.stackLayers(&n, s.reading, x)
		if r.Protocol != nil && r.Decode != nil {
			s.protocol(&n, r)
		}
	}
	if s.elastic {
		s.buf = append(s.buf, "}}\n"...)
	} else {
		s.buf = append(s.buf, "\n      }\n    }\n  }"...)
	}
	_, err := s.app.Writer().Write(s.buf)
	return err
}

// end closes the list of packets.
func (s *tsharkWriter) end() error {
	end := "\n]\n"
	switch {
	case s.elastic:
		return nil
	case s.packets == 0:
		end = "[]\n"
	}
	_, err := s.app.Writer().WriteString(end)
	return err
}

// parted returns the values that a column has appended to value.
func (s *tsharkWriter) parted() []string {
	if len(s.value) == 0 {
		return nil
	}
	return strings.Split(string(s.value), "\x00")
}

// split returns the values of a column of a whole layer.
func (s *tsharkWriter) split(c *filter.Column, r *filter.Record) []string {
	s.value = c.Append(s.value[:0], r, "\x00")
	list := s.parted()
	for i, v := range list {
		switch {
		case c.Field.Kind == filter.Bytes && !strings.Contains(v, ":"):
			list[i] = colons(v)
		case s.elastic && c.Field.Kind == filter.Bool:
			list[i] = strconv.FormatBool(v == "1")
		case s.elastic && c.Field.Name == "frame.time":
			list[i] = r.Datagram.At.Time().Format("2006-01-02T15:04:05.000000000Z")
		}
	}
	return list
}

// colons formats hexadecimal digits as aa:bb:cc.
func colons(digits string) string {
	var b strings.Builder
	for i := 0; i+1 < len(digits); i += 2 {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(digits[i : i+2])
	}
	return b.String()
}

// next begins a key, indented by blanks.
func (s *tsharkWriter) next(n *int, blanks int, key string) {
	if *n > 0 {
		s.buf = append(s.buf, ',')
	}
	*n++
	if !s.elastic {
		s.buf = app.AppendBlanks(append(s.buf, '\n'), blanks)
	}
	s.buf = append(export.AppendString(s.buf, key), ':')
	if !s.elastic {
		s.buf = append(s.buf, ' ')
	}
}

// text writes a value. It is text, except for -T ek's booleans.
func (s *tsharkWriter) text(v string, truth bool) {
	if truth && s.elastic {
		s.buf = append(s.buf, v...)
		return
	}
	s.buf = export.AppendString(s.buf, v)
}

func (s *tsharkWriter) header(n *int, l *tsharkLayer, r *filter.Record) {
	fields, inner, tree := 0, 0, ""
	leave := func() {
		if tree != "" {
			s.buf = append(s.buf, "\n          }"...)
			tree = ""
		}
	}
	for _, c := range l.columns {
		list := s.split(c, r)
		if len(list) == 0 {
			continue
		}
		if fields == 0 {
			s.next(n, 8, l.name)
			s.buf = append(s.buf, '{')
		}
		of := ""
		if !s.elastic {
			of = treeOf(l.name, c.Field.Name)
		}
		if of != tree {
			leave()
			if tree, inner = of, 0; of != "" {
				s.next(&fields, 10, of)
				s.buf = append(s.buf, '{')
			}
		}
		if tree != "" {
			s.field(&inner, 12, l.name, c.Field.Name, list, c.Field.Kind == filter.Bool)
		} else {
			s.field(&fields, 10, l.name, c.Field.Name, list, c.Field.Kind == filter.Bool)
		}
	}
	leave()
	s.close(fields)
}

// treeOf returns the name of the parent under which tshark puts a field, such
// as ip.flags_tree for ip.flags.df. It returns "" if there is no parent.
func treeOf(layer, name string) string {
	if i := strings.LastIndexByte(name, '.'); i > len(layer) {
		return name[:i] + "_tree"
	}
	return ""
}

// field writes a field of a layer, indented by blanks.
func (s *tsharkWriter) field(n *int, blanks int, layer, name string, list []string, truth bool) {
	if s.elastic {
		name = layer + "_" + strings.ReplaceAll(name, ".", "_")
	}
	s.next(n, blanks, name)
	if len(list) == 1 {
		s.text(list[0], truth)
		return
	}
	s.array(list, blanks+2, truth)
}

func (s *tsharkWriter) close(fields int) {
	if fields == 0 {
		return
	}
	if !s.elastic {
		s.buf = append(s.buf, "\n        "...)
	}
	s.buf = append(s.buf, '}')
}

func (s *tsharkWriter) array(list []string, blanks int, truth bool) {
	s.buf = append(s.buf, '[')
	for i, v := range list {
		if i > 0 {
			s.buf = append(s.buf, ',')
		}
		if !s.elastic {
			s.buf = app.AppendBlanks(append(s.buf, '\n'), blanks)
		}
		s.text(v, truth)
	}
	if !s.elastic {
		s.buf = app.AppendBlanks(append(s.buf, '\n'), blanks-2)
	}
	s.buf = append(s.buf, ']')
}

// list writes a field that -e chose. It is always a list.
func (s *tsharkWriter) list(n *int, name string, list []string) {
	if len(list) == 0 {
		return
	}
	if s.elastic {
		name = strings.ReplaceAll(name, ".", "_")
	}
	s.next(n, 8, name)
	s.array(list, 10, false)
}

// raw writes the bytes of the frame and their position.
func (s *tsharkWriter) raw(n *int, data []byte) {
	s.next(n, 8, "frame_raw")
	if s.elastic {
		s.buf = export.AppendHex(s.buf, data)
		return
	}
	s.buf = export.AppendHex(append(s.buf, "[\n          "...), data)
	for _, v := range []int{0, len(data), 0, 1} {
		s.buf = strconv.AppendInt(append(s.buf, ",\n          "...), int64(v), 10)
	}
	s.buf = append(s.buf, "\n        ]"...)
}

// protocol writes the layer of a game protocol: each field by its name.
func (s *tsharkWriter) protocol(n *int, r *filter.Record) {
	d := r.Dissection()
	fields := 0
	s.names = s.names[:0]
	at := map[string]int{}
	truth := map[string]bool{}
	for i := range d.Fields {
		f := &d.Fields[i]
		if f.Spec.Kind == dissect.KindGroup {
			continue
		}
		v := string(filter.AppendValue(nil, f))
		switch f.Spec.Kind {
		case dissect.KindBytes:
			v = colons(v)
		case dissect.KindBool:
			truth[f.Spec.Name] = true
			if s.elastic {
				v = strconv.FormatBool(f.Uint != 0)
			}
		default:
		}
		k, ok := at[f.Spec.Name]
		if !ok {
			k = len(s.names)
			at[f.Spec.Name], s.names = k, append(s.names, f.Spec.Name)
			if k == len(s.values) {
				s.values = append(s.values, nil)
			}
			s.values[k] = s.values[k][:0]
		}
		s.values[k] = append(s.values[k], v)
	}
	s.next(n, 8, r.Protocol.Name)
	s.buf = append(s.buf, '{')
	for k, name := range s.names {
		s.field(&fields, 10, r.Protocol.Name, name, s.values[k], truth[name])
	}
	if fields == 0 {
		s.buf = append(s.buf, '}')
		return
	}
	s.close(fields)
}

package main

import (
	"math"
	"net/netip"
	"slices"
	"strconv"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// packetWriter writes packets as JSON Lines.
type packetWriter struct {
	app     *app
	listing *listing
	several bool
	tree    bool // every field with its place
	hex     bool // the frame's bytes

	o    object
	info []byte

	// fields by name, see group
	heads, tails []int
	chain        []int32
	byName       map[string]int
}

var transportWords = map[capture.Transport]string{capture.UDP: "udp", capture.TCP: "tcp", capture.Fragment: "ip-fragment"}

func (s *packetWriter) show(r *filter.Record, x *analyze.Record) error {
	o := &s.o
	o.begin()
	o.uint("frame", r.Datagram.Ref.Frame())
	if s.several {
		o.str("file", r.File)
	}
	o.time("time", r.Datagram.At)
	if r.Flow != 0 {
		o.uint("flow", uint64(r.Flow))
	} else {
		o.null("flow")
	}
	if r.Protocol != nil {
		o.str("protocol", r.Protocol.Name)
		o.str("dialect", r.Dialect)
	} else {
		o.null("protocol")
		o.null("dialect")
	}
	if r.Flow != 0 {
		o.str("side", r.Datagram.From.String())
	} else {
		o.null("side")
	}
	if r.Src.IsValid() {
		o.endpoint("addr", r.Src, r.Transport)
		o.endpoint("peer", r.Dst, r.Transport)
	}
	o.word("transport", transportWords[r.Transport])
	if r.Frame != nil {
		o.int("length", int64(r.Frame.Length))
		o.int("captured", int64(len(r.Frame.Data)))
	}
	if r.Transport == capture.UDP || r.Transport == capture.TCP {
		o.int("payload_length", int64(r.Datagram.Length))
	}
	if x.Message {
		o.int("index", int64(x.Index))
		o.spans(x.Spans)
	}
	if p := r.Packet; p != nil {
		if p.Duplicate {
			o.bool("capture_duplicate", true)
		}
		if p.Fragments > 1 && !x.Message {
			o.spans(p.Spans)
		}
		if p.Problem != nil {
			o.str("problem", p.Problem.Error())
		}
	}
	if r.Frame != nil {
		comments := false
		for c := range r.Frame.Comments() {
			if !comments {
				o.key("comments")
				o.buf = append(o.buf, '[')
				comments = true
			} else {
				o.buf = append(o.buf, ',')
			}
			o.buf = appendJSONString(o.buf, c)
		}
		if comments {
			o.buf = append(o.buf, ']')
		}
	}
	s.info = show.AppendInfo(s.info[:0], &s.listing.reading)
	o.str("info", string(s.info))
	if r.Protocol != nil && r.Decode != nil {
		d := r.Dissection()
		own := s.listing.reading.Own
		s.fields(d.Fields[:own])
		if whole := s.listing.reading.Whole; whole != nil {
			o.key("joined")
			o.inner(func() {
				o.int("length", int64(whole.Length))
				s.fields(d.Fields[own:])
				if p := s.listing.reading.Inside.Problem; p != nil {
					o.str("malformed", p.Error())
				}
			})
		}
		if d.Problem != nil {
			o.str("malformed", d.Problem.Error())
		}
		if d.Snapped {
			o.bool("snapped", true)
		}
	}
	s.settled(x)
	if s.hex && r.Frame != nil {
		o.key("bytes")
		o.buf = appendJSONHex(o.buf, r.Frame.Data)
	}
	return o.end(s.app.writer())
}

// spans writes the frames that bytes came in.
func (o *object) spans(list []capture.Span) {
	o.list("spans", len(list), func(i int) { o.buf = strconv.AppendUint(o.buf, list[i].Ref.Frame(), 10) })
}

// endpoint writes an address, with its port where the packet has ports.
func (o *object) endpoint(k string, a netip.AddrPort, t capture.Transport) {
	o.key(k)
	o.buf = append(o.buf, '"')
	o.buf = show.AppendEndpoint(o.buf, a, t)
	o.buf = append(o.buf, '"')
}

// fields writes the decoded fields by name: a name that occurs several times
// has an array. With the tree, every field besides with its label and place.
func (s *packetWriter) fields(list []dissect.Field) {
	o := &s.o
	o.key("fields")
	o.buf = append(o.buf, '{')
	s.group(list)
	for _, i := range s.heads {
		f := &list[i]
		o.key(f.Spec.Name)
		if s.chain[i] == 0 {
			o.buf = appendJSONValue(o.buf, f)
			continue
		}
		o.buf = append(o.buf, '[')
		for j := i; ; j = int(s.chain[j]) {
			o.buf = appendJSONValue(o.buf, &list[j])
			if s.chain[j] == 0 {
				break
			}
			o.buf = append(o.buf, ',')
		}
		o.buf = append(o.buf, ']')
	}
	o.buf = append(o.buf, '}')
	if !s.tree {
		return
	}
	o.key("tree")
	o.buf = append(o.buf, '[')
	for i := range list {
		f := &list[i]
		if i > 0 {
			o.buf = append(o.buf, ',')
		}
		o.buf = append(o.buf, '{')
		o.str("name", f.Spec.Name)
		o.str("label", f.Spec.Label)
		o.uint("depth", uint64(f.Depth))
		if f.Bits > 0 {
			o.uint("bit", uint64(f.Bit))
			o.uint("bits", uint64(f.Bits))
		}
		if f.Spec.Kind != dissect.KindGroup {
			o.key("value")
			o.buf = appendJSONValue(o.buf, f)
		}
		if f.Note != "" {
			o.str("note", f.Note)
		}
		o.buf = append(o.buf, '}')
	}
	o.buf = append(o.buf, ']')
}

// fewFields is up to how many names looking through all of them beats a map.
const fewFields = 24

// group chains the fields of one name: heads are the first ones in their order,
// chain leads from each to the next of its name, 0 at the last.
func (s *packetWriter) group(list []dissect.Field) {
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

// settled writes what was settled at the packet, in short: the whole is the
// events command's.
func (s *packetWriter) settled(x *analyze.Record) {
	o := &s.o
	if len(x.Events) > 0 {
		o.key("events")
		o.buf = append(o.buf, '[')
		for i := range x.Events {
			e := &x.Events[i]
			if i > 0 {
				o.buf = append(o.buf, ',')
			}
			o.buf = append(o.buf, '{')
			o.str("event", show.EventName(x.Flow, e.Kind))
			o.str("side", e.Side.String())
			o.uint("sequence", uint64(e.Sequence))
			o.str("certainty", e.Certainty.String())
			o.uint("frame", e.Ref.Frame())
			if e.Kind == machine.EventAcked && e.By != 0 {
				o.uint("by_frame", e.By.Frame())
				o.uint("bit", uint64(e.Bit))
			}
			o.buf = append(o.buf, '}')
		}
		o.buf = append(o.buf, ']')
	}
	if len(x.Anomalies) > 0 {
		o.key("findings")
		o.buf = append(o.buf, '[')
		for i := range x.Anomalies {
			m := &x.Anomalies[i]
			if i > 0 {
				o.buf = append(o.buf, ',')
			}
			o.buf = append(o.buf, '{')
			o.str("rule", m.Rule.ID)
			o.str("severity", m.Rule.Severity.String())
			o.str("certainty", m.Certainty.String())
			o.str("side", m.Side.String())
			o.buf = append(o.buf, '}')
		}
		o.buf = append(o.buf, ']')
	}
}

// appendJSONValue writes a field's value: numbers in full, words of
// enumerations, bytes as hexadecimal text, what is no number as text.
func appendJSONValue(to []byte, f *dissect.Field) []byte {
	switch f.Spec.Kind {
	case dissect.KindUint:
		if word, ok := f.Spec.Enum[f.Uint]; ok {
			return appendJSONString(to, word)
		}
		return strconv.AppendUint(to, f.Uint, 10)
	case dissect.KindInt:
		return strconv.AppendInt(to, int64(f.Uint), 10)
	case dissect.KindBool:
		return strconv.AppendBool(to, f.Uint != 0)
	case dissect.KindFloat:
		v := math.Float64frombits(f.Uint)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return appendJSONString(to, strconv.FormatFloat(v, 'g', -1, 64))
		}
		return strconv.AppendFloat(to, v, 'g', -1, 64)
	case dissect.KindBytes:
		return appendJSONHex(to, f.Bytes)
	case dissect.KindText:
		return appendJSONString(to, string(f.Bytes))
	case dissect.KindAddr:
		return append(filter.AppendValue(append(to, '"'), f), '"')
	case dissect.KindGroup:
	}
	return append(to, "null"...)
}

func appendJSONHex(to, b []byte) []byte {
	to = append(to, '"')
	for _, c := range b {
		to = append(to, hexDigits[c>>4], hexDigits[c&15])
	}
	return append(to, '"')
}

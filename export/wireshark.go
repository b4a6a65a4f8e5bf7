package export

import (
	_ "embed" // the script's own part
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// The script is a table `made` and a part that never changes. Lua limits the
// constants of a function, so functions of a few frames each fill the table:
//
//	local made = {names = {{"gaffer.sequence", "Sequence", "u"}, …}, packets = {}, facts = {}}
//	;(function(p) p(1,67,"flow\1 1\2…") … end)(made.packet)
//	;(function(f) f[1]="fate\1acked\2…" … end)(made.facts)
//	;(function(...) … end)(made)
//
// Within a text, \1 separates a name from its value, \2 ends the value, and \3
// precedes a field of a protocol.

//go:embed wireshark.lua
var luaPart string

// luaFrames is how many entries one function fills in.
const luaFrames = 500

// luaBytes is how many bytes of a field the script contains.
const luaBytes = 16

// maxNotes bounds the notes on one frame.
const maxNotes = 64

// Script writes a post-dissector for Wireshark that belongs to one capture.
type Script struct {
	w       io.Writer
	numbers map[*dissect.FieldSpec]int // from 1
	notes   *Notes
	open    int // entries in the open function; 0 if none is open
	buf     []byte
	text    []byte
	err     error
}

// NewScript starts a script on w for the protocols of a registry.
func NewScript(w io.Writer, registry *dissect.Registry) *Script {
	s := &Script{w: w, numbers: map[*dissect.FieldSpec]int{}, notes: NewNotes()}
	s.buf = append(s.buf, "local made = {packets = {}, facts = {}, names = {\n"...)
	byName := map[string]int{}
	spec := func(f *dissect.FieldSpec) {
		if k, ok := byName[f.Name]; ok {
			s.numbers[f] = k
			return
		}
		k := len(byName) + 1
		byName[f.Name], s.numbers[f] = k, k
		label := f.Label
		if f.Unit != "" {
			label += " (" + f.Unit + ")"
		}
		s.buf = append(AppendLua(append(s.buf, '{'), f.Name), ',')
		s.buf = append(AppendLua(s.buf, label), ',')
		s.buf = append(AppendLua(s.buf, luaKind(f)), "},\n"...)
	}
	for _, p := range registry.Protocols() {
		for _, f := range p.Fields {
			spec(f)
		}
		for i := range p.Profiles {
			for _, f := range p.Profiles[i].Fields {
				spec(f)
			}
		}
	}
	s.buf = append(s.buf, "}}\n"+`function made.packet(n, length, text)
  local e = made.packets[n]
  if not e then
    e = {length}
    made.packets[n] = e
  end
  if e[1] == 0 then e[1] = length end
  e[#e + 1] = text
end
`...)
	return s
}

// luaKind returns the kind under which the script stores a field's values.
func luaKind(f *dissect.FieldSpec) string {
	switch f.Kind {
	case dissect.KindUint:
		if f.Enum != nil {
			return "s"
		}
		if f.Hex {
			return "x"
		}
		return "u"
	case dissect.KindInt:
		return "i"
	case dissect.KindBool:
		return "b"
	case dissect.KindFloat:
		return "d"
	case dissect.KindGroup:
		return "g"
	case dissect.KindBytes, dissect.KindText, dissect.KindAddr:
	}
	return "s"
}

// Packet adds a packet that l has read: its fields, and what was settled at it.
func (s *Script) Packet(l *filter.Reading, x *analyze.Record) error {
	s.notes.Record(x)
	r := &l.Record
	if s.err != nil || r.Flow == 0 {
		return s.err
	}
	s.text = s.text[:0]
	s.pair("flow", strconv.Itoa(r.Flow))
	s.pair("side", r.Datagram.From.String())
	if r.Protocol != nil {
		s.pair("protocol", r.Protocol.Name)
		s.pair("dialect", r.Dialect)
		s.pair("info", string(show.AppendClean(nil, show.AppendInfo(nil, l))))
		s.fields(l, x)
	}
	// A message of a TCP stream may be recorded after later frames, while its flow
	// is pending. Its frame is then no longer available, and its length is
	// omitted.
	length := 0
	if r.Frame != nil {
		length = r.Frame.Length
	} else if r.Datagram.Bytes == nil {
		return nil // the end of a flow settles facts without a packet
	}
	s.begin("p")
	s.buf = strconv.AppendUint(append(s.buf, "p("...), r.Datagram.Ref.Frame(), 10)
	s.buf = strconv.AppendInt(append(s.buf, ','), int64(length), 10)
	s.buf = append(AppendLua(append(s.buf, ','), s.text), ")\n"...)
	if s.open == luaFrames {
		s.closeFunction("packet")
	}
	return s.spill()
}

func (s *Script) pair(key, value string) {
	s.text = append(append(append(append(s.text, key...), 1), value...), 2)
}

// fields adds the packet's decoded fields with their positions in the frame.
func (s *Script) fields(l *filter.Reading, x *analyze.Record) {
	if l.Record.Decode == nil {
		return
	}
	d := l.Record.Dissection()
	base := -1
	spans := x.Spans
	if p := l.Record.Packet; p != nil && !x.Message && x.Batch.Count == 0 {
		spans = p.Spans
	}
	if len(spans) == 1 && spans[0].Ref == l.Record.Datagram.Ref {
		base = spans[0].Offset
	}
	for i := range d.Fields {
		f := &d.Fields[i]
		n, ok := s.numbers[f.Spec]
		if !ok {
			continue
		}
		from, size := 0, 0
		if base >= 0 && i < l.Own && f.Bits > 0 {
			from = base + int(f.Bit/8)
			size = int((uint64(f.Bit)+uint64(f.Bits)+7)/8 - uint64(f.Bit)/8)
		}
		s.text = fmt.Appendf(s.text, "\x03%d %d %d %d\x01", f.Depth, n, from, size)
		s.text = append(appendLuaValue(s.text, f), 2)
	}
}

func appendLuaValue(to []byte, f *dissect.Field) []byte {
	switch f.Spec.Kind {
	case dissect.KindUint:
		if word, ok := f.Spec.Enum[f.Uint]; ok {
			return show.AppendClean(to, word)
		}
		return strconv.AppendUint(to, f.Uint, 10)
	case dissect.KindText:
		return show.AppendClean(to, f.Bytes)
	case dissect.KindGroup:
		return to
	case dissect.KindFloat:
		if v := math.Float64frombits(f.Uint); math.IsNaN(v) || math.IsInf(v, 0) {
			return append(to, '0')
		}
	case dissect.KindBytes:
		if len(f.Bytes) > luaBytes { // the frame has the rest
			return append(appendHex(to, f.Bytes[:luaBytes]), "…"...)
		}
	case dissect.KindInt, dissect.KindBool, dissect.KindAddr:
	}
	return filter.AppendValue(to, f)
}

// begin opens a function if none is open.
func (s *Script) begin(what string) {
	if s.open == 0 {
		s.buf = append(append(append(s.buf, ";(function("...), what...), ")\n"...)
	}
	s.open++
}

// closeFunction ends the open function.
func (s *Script) closeFunction(of string) {
	if s.open > 0 {
		s.buf = append(append(append(s.buf, "end)(made."...), of...), ")\n"...)
		s.open = 0
	}
}

func (s *Script) spill() error {
	if s.err == nil && len(s.buf) > 32<<10 {
		_, s.err = s.w.Write(s.buf)
		s.buf = s.buf[:0]
	}
	return s.err
}

// Abandon removes the temporary files of a script that will not be closed.
func (s *Script) Abandon() error { return s.notes.Close() }

// Close writes the facts, which were known only later, and the constant part of
// the script. frames is the number of frames in the capture.
func (s *Script) Close(frames uint64) error {
	defer s.notes.Close() //nolint:errcheck // a temporary file
	s.closeFunction("packet")
	if err := s.notes.Sort(); s.err == nil {
		s.err = err
	}
	var list []Note
	for frame := uint64(1); frame <= frames && s.err == nil; frame++ {
		if list, s.err = s.notes.At(machine.MakeRef(0, frame), list); s.err != nil || len(list) == 0 {
			continue
		}
		s.facts(frame, list[:min(len(list), maxNotes)])
		s.err = s.spill()
	}
	s.closeFunction("facts")
	if s.err == nil {
		s.buf = append(append(append(s.buf, ";(function(...)\n"...), luaPart...), "end)(made)\n"...)
		_, s.err = s.w.Write(s.buf)
	}
	return s.err
}

// facts writes what is known about a frame. Its fate is the last one that was
// settled: lost or acked from the sender's view, otherwise how the receiver
// treated it.
func (s *Script) facts(frame uint64, list []Note) {
	s.begin("f")
	s.text = s.text[:0]
	fate, sure := "", machine.Unknown
	number := func(key string, r machine.Ref) {
		if r != 0 {
			s.pair(key, strconv.FormatUint(r.Frame(), 10))
		}
	}
	told := map[string]bool{}
	for i := range list {
		x := &list[i]
		switch x.Kind {
		case NoteSent:
			s.pair("sequence", strconv.FormatInt(x.Sequence, 10))
			continue
		case NoteAcked:
			fate, sure = "acked", x.Certainty
			number("acked_in", x.Other)
			if x.RTT >= 0 {
				s.text = append(s.text, "rtt\x01"...)
				s.text = append(AppendDecimal(s.text, x.RTT, 6), 2)
			}
		case NoteLost:
			fate, sure = "lost", x.Certainty
		case NoteReceived, NoteDuplicate, NoteStale, NoteRejected:
			if fate != "acked" && fate != "lost" {
				fate, sure = [...]string{"received", "duplicate", "stale", "rejected"}[x.Kind-NoteReceived], x.Certainty
			}
		case NoteAcks:
			number("acks", x.Other)
		case NoteResendOf:
			number("resend_of", x.Other)
		case NoteResentIn:
			number("resent_in", x.Other)
		case NoteEvent:
			s.pair("event", x.Word)
		case NoteFinding:
			if !told[x.Word] {
				told[x.Word] = true
				s.pair("finding_"+x.Rule.Severity.String(), x.Word+" "+x.Rule.Summary)
			}
		}
	}
	if fate != "" {
		s.pair("fate", fate)
		s.pair("certainty", sure.String())
	}
	s.buf = strconv.AppendUint(append(s.buf, "f["...), frame, 10)
	s.buf = append(AppendLua(append(s.buf, "]="...), s.text), '\n')
	if s.open == luaFrames {
		s.closeFunction("facts")
	}
}

// AppendLua appends text as a Lua string. Whatever the text contains, the
// script reads it back unchanged.
func AppendLua[T string | []byte](to []byte, s T) []byte {
	to = append(to, '"')
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			to = append(to, '\\', '0'+c/100, '0'+c/10%10, '0'+c%10)
		} else {
			to = append(to, c)
		}
	}
	return append(to, '"')
}

package listing

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/dissect/stack"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// columns are the columns that -e chose. Those of headers have the values of
// every layer of the frame, as tshark's have. For example, an error of ICMP has
// two of ip.src: its own, and that of the packet that it quotes.
//
// A frame without quoted packets and tunnels has no values beyond those of its
// record, which cost nothing. Only other frames are taken apart into layers.
type columns struct {
	list    []column
	needs   filter.Needs
	sources map[string][]*layerColumn // by the name of a layer's field; empty if no column needs layers
	frame   machine.Ref               // whose values the layer columns hold, within the recording
	some    bool                      // they hold values of a frame of the recording
	deep    bool                      // a column has values that no record has
	plain   bool                      // the record has all values of its frame
	fields  []stack.Field             // scratch
}

// column is one column.
type column struct {
	field  *filter.Field
	values *filter.Column // of the record; nil if only layers have the field
	layers *layerColumn   // nil if no layer has the field
}

// layerColumn is a column whose values come from the layers of the frame.
type layerColumn struct {
	name   string
	byPort bool // only a port number says that the payload has the field
	text   []byte
	ends   []int // of each value within text
}

// combined are the columns that several fields of a layer fill.
var combined = map[string][]string{
	"eth.addr": {"eth.dst", "eth.src"}, "ip.addr": {"ip.src", "ip.dst"}, "ipv6.addr": {"ipv6.src", "ipv6.dst"},
	"udp.port": {"udp.srcport", "udp.dstport"}, "tcp.port": {"tcp.srcport", "tcp.dstport"},
	"ip.version":        {"ip.version", "ipv6.version"},
	"dhcp.option.value": {"dhcp.option.dhcp", "dhcp.option.value"},
}

// newColumns looks up the columns of these names.
func newColumns(a *app.App, names []string) (*columns, error) {
	known, byPort := map[string]bool{}, map[string]bool{}
	for _, n := range stack.Names() {
		known[n.Name], byPort[n.Name] = true, n.ByPort
	}
	s := &columns{sources: map[string][]*layerColumn{}}
	for _, name := range names {
		f, ok := a.Table().LookupColumn(name)
		if !ok {
			return nil, unknownColumn(a, name)
		}
		c := column{field: f}
		if !f.ColumnOnly() {
			c.values = f.Column()
		}
		from, several := combined[f.Name]
		if !several {
			from = []string{f.Name}
		}
		if several || known[f.Name] {
			c.layers = &layerColumn{name: f.Name, byPort: byPort[f.Name]}
			s.deep = s.deep || c.values == nil || f.Name == "udp.length" // which the IP header says, in a record
			for _, name := range from {
				s.sources[name] = append(s.sources[name], c.layers)
			}
		}
		s.needs |= f.Needs
		s.list = append(s.list, c)
	}
	return s, nil
}

func unknownColumn(a *app.App, name string) error {
	if near := a.Table().SuggestColumn(name); near != "" {
		return fmt.Errorf("-e %s: no field is named so; did you mean %s?", name, near)
	}
	return fmt.Errorf("-e %s: no field is named so (`ackscope fields` lists them)", name)
}

// begin forgets the frame: the next recording has frames of the same numbers.
func (s *columns) begin(*reader.Recording) error {
	s.some = false
	return nil
}

// take reads the values of a record. It takes the frame apart, at most once, if
// a column needs that.
func (s *columns) take(r *filter.Record, x *analyze.Record) {
	if len(s.sources) == 0 || r.Frame == nil {
		return
	}
	// The messages of a segment come with the same frame.
	if x.Message && s.some && s.frame == r.Frame.Ref {
		return
	}
	s.frame, s.some = r.Frame.Ref, true
	if s.plain = !s.deep && isPlain(r); s.plain {
		return
	}
	for i := range s.list {
		if l := s.list[i].layers; l != nil {
			l.text, l.ends = l.text[:0], l.ends[:0]
		}
	}
	s.walk(stack.Decode(r.Frame, stack.Chosen{}), r, false)
	if r.Packet.Joined != nil {
		s.walk(stack.DecodeIP(r.Packet.Joined, r.Packet.JoinedAs, stack.Chosen{}), r, false)
	}
}

// isPlain reports whether the headers of a record are all layers of its frame.
// The test of package stack that compares the decoders holds that. They differ in
// an 802.3 frame whose length field leaves bytes over.
func isPlain(r *filter.Record) bool {
	p := r.Packet
	return p.Problem == nil && p.Joined == nil &&
		(p.Transport == capture.TCP || p.Transport == capture.UDP && stack.Ends(p.Src.Port(), p.Dst.Port())) &&
		!slices.ContainsFunc(p.Layers, func(l capture.Layer) bool { return l.Kind == capture.LayerSNAP })
}

// walk adds the values of a packet's layers, and of those that it quotes.
func (s *columns) walk(k *stack.Stack, r *filter.Record, quoted bool) {
	for i := range k.Layers {
		l := &k.Layers[i]
		s.fields = k.FieldsInto(s.fields, i)
		s.add(l, r, quoted)
		last := slices.ContainsFunc(s.fields, isOpaque)
		s.fields = k.Parts(s.fields, i)
		if s.add(l, r, quoted); last {
			return
		}
		if l.Quoted != nil {
			s.walk(l.Quoted, r, true)
		}
	}
}

// isOpaque reports whether a field says that an IP packet follows within IP, by
// a number that tshark takes for data. Trees show the packet within.
func isOpaque(f stack.Field) bool {
	const ipWithinIP = 94
	return f.Name == "ip.proto" && f.Uint == ipWithinIP
}

// Columns that tshark leaves out for quoted packets, and for questions of DNS.
var (
	quotedLess   = map[string]bool{"tcp.len": true, "tcp.seq_raw": true}
	questionLess = map[string]bool{
		"dns.flags.authoritative": true, "dns.flags.recavail": true, "dns.flags.authenticated": true,
		"dns.flags.rcode": true,
	}
)

// isLeftOut reports whether tshark has no column for a field of a layer.
func isLeftOut(f *stack.Field, l *stack.Layer, quoted bool) bool {
	const response = 0x80 // a bit of the byte at 2
	return f.Kind == stack.Group || quoted && quotedLess[f.Name] ||
		questionLess[f.Name] && l.Header()[2]&response == 0
}

// add adds the values of the fields of a layer. Where detection ran and found a game, a port
// number is no reason to read the payload as something else. These columns alone
// make no detection run: tshark reads ports too, and a live capture need not wait.
func (s *columns) add(l *stack.Layer, r *filter.Record, quoted bool) {
	for i := range s.fields {
		f := &s.fields[i]
		if isLeftOut(f, l, quoted) {
			continue
		}
		for _, c := range s.sources[f.Name] {
			if c.byPort && l.ByPort && r.Protocol != nil {
				continue
			}
			switch write, other := written[c.name]; {
			case other:
				at := f.Bit/8 - l.Offset
				c.text = write(c.text, l.Header()[at:at+f.Bits/8])
			default:
				c.text = appendValue(c.text, f)
			}
			c.ends = append(c.ends, len(c.text))
		}
	}
}

// append appends the values of column i as text, with a separator between them.
func (s *columns) append(to []byte, i int, r *filter.Record, between string) []byte {
	c := &s.list[i]
	// The flow has the messages of frames that are gone, and the length of a
	// segment that a snap length has cut.
	ofRecord := c.layers == nil || s.plain || r.Frame == nil || c.field.Name == "tcp.len" && r.Transport == capture.TCP
	switch {
	case !ofRecord:
		return c.layers.append(to, between)
	case c.values != nil:
		return c.values.Append(to, r, between)
	}
	return to
}

func (l *layerColumn) append(to []byte, between string) []byte {
	from := 0
	for i, end := range l.ends {
		if i > 0 {
			to = append(to, between...)
		}
		to = append(to, l.text[from:end]...)
		from = end
	}
	return to
}

// written are the columns that tshark writes in another way than trees do here,
// of the bytes of the field.
var written = map[string]func(to, b []byte) []byte{
	"ah.reserved": hex.AppendEncode,
	"dhcp.cookie": func(to, b []byte) []byte { return netip.AddrFrom4([4]byte(b)).AppendTo(to) },
	// Whatever the bytes mean: tshark has names of its own for each option.
	"dhcp.option.value":    hex.AppendEncode,
	"ipv6.opt.type":        func(to, b []byte) []byte { return filter.AppendHex(to, uint64(b[0]), 8) },
	"ipv6.routing.srh.tag": hex.AppendEncode,
}

// wideHex are fields that tshark writes with the digits of more bits than they
// have.
var wideHex = map[string]int{
	"ip.flags": 8, "ipv6.tclass": 32, "ipv6.flow": 24, "tcp.flags": 16, "llc.control": 16, "dns.qry.class": 16,
	"dns.resp.class": 16,
}

// appendValue appends a value as tshark's -T fields writes it.
func appendValue(to []byte, f *stack.Field) []byte {
	switch f.Kind {
	case stack.Number, stack.Flag:
		return strconv.AppendUint(to, f.Uint, 10)
	case stack.Hex:
		bits := f.Bits
		if whole, ok := wideHex[f.Name]; ok {
			bits = whole
		}
		return filter.AppendHex(to, f.Uint, bits)
	case stack.Address:
		return show.AppendAddress(to, f)
	case stack.Bytes:
		return hex.AppendEncode(to, f.Bytes)
	case stack.Text:
		if f.Text == "" && (f.Name == "dns.qry.name" || f.Name == "dns.resp.name") {
			return append(to, "<Root>"...)
		}
		return append(to, f.Text...)
	case stack.Group:
	}
	return to
}

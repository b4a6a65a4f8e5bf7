package fields

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
)

// aliases are other names of fields: the words of the events, and Wireshark's
// names.
var aliases = map[string]string{
	"message.latency": "message.proved", "rel.duplicate": "rel.dup", "rel.resent": "rel.resend",
	"_ws.malformed": "malformed",
}

// Options are the fields that a table has in addition to those of every
// capture.
type Options struct {
	Registry *dissect.Registry
	Rules    []*machine.Rule      // the rules that belong to no protocol
	Specs    []*dissect.FieldSpec // from the user's schemas
	Columns  []*filter.Field      // that only columns know; a name that a filter knows stays that field
}

// NewTable returns the table of all fields.
func NewTable(o Options) *filter.Table {
	t := &vocabulary{byName: map[string]*filter.Field{}}
	for _, f := range frameFields() {
		t.add(f)
	}
	for _, f := range otherFields() {
		t.add(f)
	}
	var protocols []*dissect.Protocol
	if o.Registry != nil {
		protocols = o.Registry.Protocols()
	}
	rules := slices.Clone(o.Rules)
	for _, p := range protocols {
		rules = append(rules, p.Rules...)
	}
	for _, f := range flowFields(protocols) {
		t.add(f)
	}
	for _, f := range eventFields(protocols) {
		t.add(f)
	}
	t.add(resendCause(rules))
	for _, f := range fateFields() {
		t.add(f)
	}
	for _, f := range messageFields() {
		t.add(f)
	}
	for _, f := range findingFields(rules) {
		t.add(f)
	}
	for _, p := range protocols {
		t.add(&filter.Field{
			Name: p.Name, Doc: p.Title + ": the packet's flow is read as this protocol.", Of: p, Needs: filter.NeedFlow,
			Present: func(r *filter.Record) bool { return r.Protocol == p },
		})
		for _, s := range p.Fields {
			t.addSpec(p, s)
		}
	}
	for _, s := range o.Specs {
		t.addSpec(nil, s)
	}
	slices.SortStableFunc(t.list, func(a, b *filter.Field) int { return cmp.Compare(group(a.Name), group(b.Name)) })
	columns := slices.DeleteFunc(slices.Clone(o.Columns), func(f *filter.Field) bool { return t.byName[f.Name] != nil })
	return filter.NewTable(t.list, columns, aliases)
}

// vocabulary is a table under construction.
type vocabulary struct {
	list   []*filter.Field
	byName map[string]*filter.Field
}

// group returns the position of a field's group in listings. The order is
// frames, headers, flows, inferred facts, and then the fields of protocols.
func group(name string) int {
	first, _, _ := strings.Cut(name, ".")
	if i := slices.Index([]string{
		"frame", "eth", "vlan", "ieee8021ad", "ip", "ipv6", "udp", "tcp", "data", "arp", "icmp",
		"icmpv6", "flow", "fate", "rel", "message", "finding", "batch", "malformed",
	}, first); i >= 0 {
		return i
	}
	return 100
}

func (t *vocabulary) add(f *filter.Field) {
	f.Scope = scopeOf(f)
	t.list = append(t.list, f)
	t.byName[f.Name] = f
}

// addSpec adds a decoded field. Specs of one name and kind become one field. If
// the name has another meaning already, the first meaning remains.
func (t *vocabulary) addSpec(p *dissect.Protocol, s *dissect.FieldSpec) {
	if old, ok := t.byName[s.Name]; ok {
		if len(old.Specs) > 0 && old.Of == p && old.Specs[0].Kind == s.Kind {
			old.Specs = append(old.Specs, s)
		}
		return
	}
	t.add(decoded(p, s))
}

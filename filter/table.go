package filter

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Table is every field that filters know: help, completion and `ackscope
// fields` read it. It is immutable and may be shared.
type Table struct {
	list   []*Field
	byName map[string]*Field
}

// Options say what a table has beyond the fields of every capture.
type Options struct {
	Registry *dissect.Registry
	Rules    []*machine.Rule      // that are not a protocol's
	Specs    []*dissect.FieldSpec // of the user's schemas
}

// NewTable gathers the fields.
func NewTable(o Options) *Table {
	t := &Table{byName: map[string]*Field{}}
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
	for _, f := range messageFields() {
		t.add(f)
	}
	for _, f := range findingFields(rules) {
		t.add(f)
	}
	for _, p := range protocols {
		t.add(&Field{
			Name: p.Name, Doc: p.Title + ": the packet's flow is read as this protocol.", Of: p, needs: NeedFlow,
			present: func(r *Record) bool { return r.Protocol == p },
		})
		for _, s := range p.Fields {
			t.addSpec(p, s)
		}
	}
	for _, s := range o.Specs {
		t.addSpec(nil, s)
	}
	slices.SortStableFunc(t.list, func(a, b *Field) int { return cmp.Compare(group(a.Name), group(b.Name)) })
	return t
}

// group orders the listing: frames, headers, flows, what was inferred, then
// the protocols' own.
func group(name string) int {
	first, _, _ := strings.Cut(name, ".")
	if i := slices.Index([]string{"frame", "eth", "vlan", "ieee8021ad", "ip", "ipv6", "udp", "tcp", "data", "arp", "icmp", "icmpv6", "flow", "rel", "message", "finding", "malformed"}, first); i >= 0 {
		return i
	}
	return 100
}

func (t *Table) add(f *Field) {
	t.list = append(t.list, f)
	t.byName[f.Name] = f
}

// addSpec adds a decoded field. Specs of one name and kind are one field; of a
// name that has another meaning already, the first meaning stays.
func (t *Table) addSpec(p *dissect.Protocol, s *dissect.FieldSpec) {
	if old, ok := t.byName[s.Name]; ok {
		if len(old.specs) > 0 && old.Of == p && old.specs[0].Kind == s.Kind {
			old.specs = append(old.specs, s)
		}
		return
	}
	t.add(decoded(p, s))
}

// Fields lists all fields, grouped; the caller must not change the slice.
func (t *Table) Fields() []*Field { return t.list }

// aliases are other names of fields: the words of the events, and Wireshark's.
var aliases = map[string]string{"rel.duplicate": "rel.dup", "rel.resent": "rel.resend", "_ws.malformed": "malformed"}

// Lookup finds a field by name.
func (t *Table) Lookup(name string) (*Field, bool) {
	if other, ok := aliases[name]; ok {
		name = other
	}
	f, ok := t.byName[name]
	return f, ok
}

// Suggest gives the known name that is nearest to a mistyped one; empty where
// none is near.
func (t *Table) Suggest(name string) string {
	names := make([]string, len(t.list))
	for i, f := range t.list {
		names[i] = f.Name
	}
	if s := Nearest(name, names); s != "" {
		return s
	}
	// A part of a name: "sequence" for "gaffer.sequence"; a protocol's own first.
	tail := name
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		tail = name[i+1:]
	}
	found := ""
	for _, f := range t.list {
		i := strings.LastIndexByte(f.Name, '.')
		if i > 0 && len(tail) > 2 && strings.EqualFold(f.Name[i+1:], tail) && (found == "" || f.Of != nil && t.byName[found].Of == nil) {
			found = f.Name
		}
	}
	return found
}

// Nearest gives the candidate that was likely meant: the one that takes the
// fewest changed characters, if they are few against the word's length, or one
// that the word begins; empty where there is none.
func Nearest(word string, candidates []string) string {
	best, least := "", len(word)/3+1
	lower := strings.ToLower(word)
	for _, c := range candidates {
		d := len(word) + len(c)
		if strings.HasPrefix(strings.ToLower(c), lower) && len(word) > 2 && !strings.Contains(c[len(word):], ".") {
			d = 0 // cut short
		} else if abs(len(c)-len(word)) <= least {
			d = distance(lower, strings.ToLower(c))
		}
		if d < least || d == least && best == "" && d < len(word) {
			best, least = c, d
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// distance counts inserted, deleted, changed and swapped bytes.
func distance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}

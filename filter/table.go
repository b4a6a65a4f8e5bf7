package filter

import (
	"slices"
	"strings"
)

// Table is the set of all fields that filters may use. Help, completion and
// `ackscope fields` read it. It is immutable and may be shared. Package
// filter/fields builds the program's table.
type Table struct {
	list    []*Field
	columns []*Field // which only listings know
	byName  map[string]*Field
	aliases map[string]string
}

// NewTable returns a table of fields, in the order of listings. Each field has
// a unique name. Records do not hold the values of columns, so that filters
// cannot use these fields. aliases maps other names to names of fields.
func NewTable(fields, columns []*Field, aliases map[string]string) *Table {
	t := &Table{
		list: fields, columns: columns, byName: make(map[string]*Field, len(fields)+len(columns)),
		aliases: aliases,
	}
	for _, f := range slices.Concat(fields, columns) {
		t.byName[f.Name] = f
	}
	return t
}

// Fields returns the fields that filters can use, in groups. The caller must not
// change the slice.
func (t *Table) Fields() []*Field { return t.list }

// Columns returns every field that a column can name: those of Fields, then
// those that filters cannot use.
func (t *Table) Columns() []*Field { return slices.Concat(t.list, t.columns) }

// Lookup finds a field that filters can use, by its name or an alias.
func (t *Table) Lookup(name string) (*Field, bool) {
	if f, ok := t.LookupColumn(name); ok && !f.ColumnOnly() {
		return f, true
	}
	return nil, false
}

// LookupColumn finds a field that a column can name, by its name or an alias.
func (t *Table) LookupColumn(name string) (*Field, bool) {
	if other, ok := t.aliases[name]; ok {
		name = other
	}
	f, ok := t.byName[name]
	return f, ok
}

// Suggest returns the name that is nearest to a mistyped one in a filter. It
// returns an empty string if none is near.
func (t *Table) Suggest(name string) string { return suggest(name, t.list) }

// SuggestColumn is Suggest for the name of a column.
func (t *Table) SuggestColumn(name string) string { return suggest(name, t.Columns()) }

func suggest(name string, list []*Field) string {
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.Name
	}
	if s := Nearest(name, names); s != "" {
		return s
	}
	// The last part of a name: "sequence" for "gaffer.sequence". Fields of
	// protocols come first.
	tail := name
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		tail = name[i+1:]
	}
	var found *Field
	for _, f := range list {
		i := strings.LastIndexByte(f.Name, '.')
		if i > 0 && len(tail) > 2 && strings.EqualFold(f.Name[i+1:], tail) &&
			(found == nil || f.Of != nil && found.Of == nil) {
			found = f
		}
	}
	if found == nil {
		return ""
	}
	return found.Name
}

// Nearest returns the candidate that was likely meant. That is the one with the
// fewest changed characters, if they are few for the word's length, or one that
// begins with the word. It returns an empty string if there is none.
func Nearest(word string, candidates []string) string {
	best, least := "", len(word)/3+1
	lower := strings.ToLower(word)
	for _, c := range candidates {
		d := len(word) + len(c)
		if strings.HasPrefix(strings.ToLower(c), lower) && len(word) > 2 && !strings.Contains(c[len(word):], ".") {
			d = 0 // abbreviated
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

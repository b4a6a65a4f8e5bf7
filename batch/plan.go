package batch

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ackscope/ackscope/capture/paths"
	"github.com/ackscope/ackscope/unit"
)

// Selection says which captures are analysed.
type Selection struct {
	Arguments []string // files, directories and patterns, as package capture/paths finds them
	Manifest  string   // a file of CSV or Parquet; "" for none
	Partition []string // the manifest's columns that make partitions; nil for all
	Apart     bool     // each file is a capture, even in a row of rotated files
	Share     Share
	// Elsewhere finds files by their addresses, as gs://bucket/x.pcap. If it is nil, such texts are paths
	// like others.
	Elsewhere Elsewhere
}

// Plan is the captures of a run, sorted by name.
type Plan struct {
	Captures []Capture
	Columns  []string // of the manifest, other than capture
	Failed   []error  // arguments that name no capture

	entries []entry // of each capture
}

// entry is what a run knows of a capture beside its name.
type entry struct {
	key    Key
	size   int64
	result place
	failed error         // why there is no result
	late   time.Duration // the longest time that did not suffice; 0 if none is known
}

// NewPlan finds the captures.
func NewPlan(s Selection) (*Plan, error) {
	p := &Plan{}
	b := builder{plan: p, selection: &s, paths: map[string]bool{}}
	if s.Manifest != "" {
		var err error
		if p.Columns, err = b.readManifest(); err != nil {
			return nil, err
		}
	} else if len(s.Partition) > 0 {
		return nil, errors.New("partitions: expected a manifest with the columns that make them")
	}
	if len(s.Arguments) > 0 {
		found := b.find()
		var labels []unit.Label
		for _, name := range p.Columns {
			labels = append(labels, unit.Label{Name: name, Carried: s.Partition != nil && !slices.Contains(s.Partition, name)})
		}
		if err := b.group(found, labels, filepath.ToSlash); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(p.Captures, func(x, y Capture) int { return cmp.Compare(x.Name, y.Name) })
	for i := 1; i < len(p.Captures); i++ {
		if x, y := &p.Captures[i-1], &p.Captures[i]; x.Name == y.Name {
			return nil, fmt.Errorf("two captures have the name %q: %s and %s: expected one", x.Name, x.Files[0].Path,
				y.Files[0].Path)
		}
	}
	return p, nil
}

// Unread returns how many captures have no result, since their bytes did not come.
func (p *Plan) Unread() (n uint64) {
	for i := range p.entries {
		if p.entries[i].failed != nil {
			n++
		}
	}
	return n
}

// builder collects the captures of a plan.
type builder struct {
	plan      *Plan
	selection *Selection
	paths     map[string]bool // that are in the plan, or in another share
}

// named adds what a row of the manifest names: a file, or a directory or pattern that stands for
// several captures.
func (b *builder) named(where, name string, labels []unit.Label) error {
	if address := b.selection.address(name); address != "" {
		return b.namedElsewhere(where, name, address, labels)
	}
	path := beside(b.selection.Manifest, name)
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() || err != nil && !strings.ContainsAny(name, "*?[") {
		clean := filepath.Clean(path)
		if b.paths[clean] {
			return fmt.Errorf("%s: %q is named by an earlier row too: expected each capture once", where, name)
		}
		b.paths[clean] = true
		if b.selection.Share.Has(name) {
			b.add(name, []File{{name, path}}, labels)
		}
		return nil
	}
	base := filepath.Dir(b.selection.Manifest)
	pattern := path
	if !filepath.IsAbs(filepath.FromSlash(name)) {
		pattern = filepath.Join(literal(base), filepath.FromSlash(name))
	}
	found := paths.Find([]string{pattern}, nil)
	for _, err := range found.Failed {
		b.plan.Failed = append(b.plan.Failed, fmt.Errorf("%s: %w", where, err))
	}
	for _, one := range found.Paths {
		if b.paths[filepath.Clean(one)] {
			return fmt.Errorf("%s: %q is named by an earlier row too: expected each capture once", where, one)
		}
	}
	return b.group(found.Paths, labels, func(path string) string {
		if relative, err := filepath.Rel(base, path); err == nil && !filepath.IsAbs(filepath.FromSlash(name)) {
			path = relative
		}
		return filepath.ToSlash(path)
	})
}

// literal returns the pattern that matches one path only.
func literal(path string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(path)
}

// group adds captures that were found: files of their own, and the files of rotated rows. Where the
// captures are shared, files whose names fit one row belong to one share. So no share reads the
// rows of another one.
func (b *builder) group(found []string, labels []unit.Label, name func(path string) string) error {
	var mine []string
	for _, path := range found {
		if path == "-" {
			return errors.New(`"-" (standard input): expected files, which a later run can read again`)
		}
		clean := filepath.Clean(path)
		if b.paths[clean] {
			continue
		}
		b.paths[clean] = true
		common := ""
		if !b.selection.Apart {
			common = paths.Row(name(path))
		}
		if b.selection.Share.Has(cmp.Or(common, name(path))) {
			mine = append(mine, path)
		}
	}
	if b.selection.Apart {
		for _, path := range mine {
			b.add(name(path), []File{{name(path), path}}, labels)
		}
		return nil
	}
	slices.Sort(mine)
	for _, row := range paths.RotatedRows(mine) {
		var files []File
		for _, path := range row {
			files = append(files, File{name(path), path})
		}
		b.add(files[0].Name, files, labels)
	}
	return nil
}

func (b *builder) add(name string, files []File, labels []unit.Label) {
	b.plan.Captures = append(b.plan.Captures, Capture{Name: name, Files: files, Labels: labels})
}

// prepare finds the keys of all captures. options is a text that differs for options that make
// other rows.
func (p *Plan) prepare(options string) {
	p.entries = make([]entry, len(p.Captures))
	var b []byte
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	for i := range p.Captures {
		c, e := &p.Captures[i], &p.entries[i]
		b = b[:0]
		text(options)
		text(c.Name)
		for _, x := range c.Labels {
			text(x.Name)
			text(x.Value)
			b = append(b, map[bool]byte{true: 1}[x.Carried])
		}
		for _, f := range c.Files {
			text(f.Name)
			if info, err := os.Stat(f.Path); err == nil {
				b = binary.AppendVarint(binary.AppendVarint(b, info.Size()), info.ModTime().UnixNano())
				e.size += info.Size()
			}
		}
		sum := sha256.Sum256(b)
		e.key = Key(sum[:len(Key{})])
	}
}

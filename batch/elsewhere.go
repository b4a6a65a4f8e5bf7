package batch

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/ackscope/ackscope/capture/paths"
	"github.com/ackscope/ackscope/unit"
)

// Elsewhere finds and reads files that have an address in place of a path, as gs://bucket/x.pcap.
// A program that reads such files gives it to NewPlan. `ackscope batch` has none.
type Elsewhere interface {
	// Find returns the addresses of the captures that an address, a pattern or a folder stands for.
	// Without any, it returns an error.
	Find(address string) ([]string, error)
	// Open returns a local copy of a file. The caller closes it.
	Open(address string) (*os.File, error)
}

// scheme matches the begin of an address.
var scheme = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9+.-]*://`)
})

// IsAddress reports whether a text is an address rather than a path.
func IsAddress(text string) bool { return scheme().MatchString(text) }

// remote reports whether a text is an address that the selection can find.
func (s *Selection) remote(text string) bool { return s.Elsewhere != nil && IsAddress(text) }

// address returns the address of what a row of the manifest names, or "" if it is a path.
func (s *Selection) address(name string) string {
	switch {
	case s.remote(name):
		return name
	case s.remote(s.Manifest) && !filepath.IsAbs(filepath.FromSlash(name)):
		scheme, rest, _ := strings.Cut(s.Manifest, "://")
		folder := ""
		if strings.HasSuffix(name, "/") { // path.Join drops it
			folder = "/"
		}
		return scheme + "://" + path.Join(path.Dir(rest), name) + folder
	}
	return ""
}

// openManifest opens the manifest.
func (s *Selection) openManifest() (*os.File, error) {
	if s.remote(s.Manifest) {
		return s.Elsewhere.Open(s.Manifest)
	}
	return os.Open(s.Manifest)
}

// find returns what the arguments stand for.
func (b *builder) find() (list []string) {
	var local []string
	for _, argument := range b.selection.Arguments {
		if !b.selection.remote(argument) {
			local = append(local, argument)
			continue
		}
		found, err := b.selection.Elsewhere.Find(argument)
		if err != nil {
			b.plan.Failed = append(b.plan.Failed, err)
		}
		list = append(list, found...)
	}
	found := paths.Find(local, nil)
	b.plan.Failed = append(b.plan.Failed, found.Failed...)
	return slices.Concat(found.Paths, list)
}

// namedElsewhere adds what a row of the manifest names by an address. A request for each of a million
// rows would take hours. So an address that is neither a pattern nor ends in a slash is taken as it is.
func (b *builder) namedElsewhere(where, name, address string, labels []unit.Label) error {
	found := []string{address}
	searched := strings.ContainsAny(name, "*?[") || strings.HasSuffix(name, "/")
	if searched {
		var err error
		if found, err = b.selection.Elsewhere.Find(address); err != nil {
			b.plan.Failed = append(b.plan.Failed, fmt.Errorf("%s: %w", where, err))
		}
	}
	for _, one := range found {
		if b.paths[filepath.Clean(one)] {
			return fmt.Errorf("%s: %q is named by an earlier row too: expected each capture once", where, one)
		}
	}
	base := strings.TrimSuffix(b.selection.Manifest, path.Base(b.selection.Manifest))
	return b.group(found, labels, func(one string) string {
		switch {
		case IsAddress(name):
			return one
		case !searched:
			return name
		}
		return strings.TrimPrefix(one, base)
	})
}

// Package paths finds the captures that the arguments of a command name. It tells which of them are
// one row of files that a rotating capture wrote.
package paths

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/ackscope/ackscope/capture"
)

// captureName matches the names of captures in directories. Digits follow the
// ending in the rows of tcpdump -C.
var captureName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\.(?:pcap|pcapng|cap|ntar)\d{0,9}(?:\.gz|\.zst)?$`)
})

// IsCapture reports whether a file name is that of a capture.
func IsCapture(name string) bool { return captureName().MatchString(name) }

// Found is the captures that the arguments of a command name.
type Found struct {
	Paths  []string // in the order of the arguments; "-" is standard input
	Failed []error  // arguments and directories that name no capture or cannot be read
	// Searched reports whether a directory or a pattern was searched. The user
	// may then not know how many captures there are.
	Searched bool

	known map[string]bool
	other func(path string)
}

// Find returns the captures that arguments name:
//
//   - A file is taken as it is, also one that does not exist: opening it reports
//     the problem.
//   - A directory stands for all captures below it, in the order of their names.
//     Captures are known by their names, or by their first bytes. Links to files
//     are followed; links to directories below a directory are not.
//   - A pattern stands for what it matches, if no file has its name: * and ? and
//     [a-z] within one name, ** for any directories.
//
// A file that a search finds is taken once. The function other receives the
// other files below directories; it may be nil.
func Find(arguments []string, other func(path string)) *Found {
	f := &Found{known: map[string]bool{}, other: other}
	for _, a := range arguments {
		info, err := os.Stat(a)
		switch {
		case a == "-" || err == nil && !info.IsDir():
			f.name(a)
		case err == nil:
			f.directory(a)
		case strings.ContainsAny(a, "*?["):
			f.pattern(a)
		default:
			f.name(a)
		}
	}
	return f
}

// name adds a file that an argument names.
func (f *Found) name(path string) {
	f.known[filepath.Clean(path)] = true
	f.Paths = append(f.Paths, path)
}

// found adds a file that a search found.
func (f *Found) found(path string) {
	if clean := filepath.Clean(path); !f.known[clean] {
		f.known[clean] = true
		f.Paths = append(f.Paths, path)
	}
}

// directory adds the captures below a directory.
func (f *Found) directory(dir string) {
	f.Searched = true
	failed, captures := len(f.Failed), 0
	// The separator lets a link to a directory be looked into.
	_ = filepath.WalkDir(dir+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			f.Failed = append(f.Failed, err)
		case d.IsDir():
		case IsCapture(d.Name()) || beginsAsCapture(path, d):
			captures++
			f.found(path)
		case f.other != nil:
			f.other(path)
		}
		return nil
	})
	if captures == 0 && len(f.Failed) == failed {
		f.Failed = append(f.Failed, fmt.Errorf("%s: no capture below it: expected files named *.pcap, *.pcapng, *.cap or "+
			"*.ntar, plain or with .gz or .zst behind", dir))
	}
}

// beginsAsCapture reports whether a regular file begins as a capture does. It
// opens no pipes and devices, which may wait for a writer.
func beginsAsCapture(path string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink != 0 {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return false
		}
	} else if !d.Type().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var head [4]byte
	_, err = io.ReadFull(file, head[:])
	return err == nil && capture.Begins(head)
}

// pattern adds the captures that a pattern matches.
func (f *Found) pattern(pattern string) {
	f.Searched = true
	volume := filepath.VolumeName(pattern)
	slashed := filepath.ToSlash(pattern[len(volume):])
	trimmed := strings.TrimLeft(slashed, "/")
	base := volume + slashed[:len(slashed)-len(trimmed)]
	parts := strings.FieldsFunc(trimmed, func(r rune) bool { return r == '/' })
	for _, part := range parts {
		if _, err := filepath.Match(part, ""); err != nil {
			f.Failed = append(f.Failed, fmt.Errorf("%s: no such file, and %q is no pattern: expected a ] for each [",
				pattern, part))
			return
		}
	}
	var matched []string
	matches(base, parts, &matched)
	slices.Sort(matched)
	before, failed, others := len(f.known), len(f.Failed), 0
	captures := 0
	for _, path := range slices.Compact(matched) {
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case info.IsDir():
			if !slices.Contains(parts, "**") { // else what is below it matches itself
				f.directory(path)
				captures++
			}
		case IsCapture(info.Name()) || beginsAsCapture(path, fs.FileInfoToDirEntry(info)):
			f.found(path)
			captures++
		default:
			others++
		}
	}
	if captures > 0 || len(f.known) > before || len(f.Failed) > failed {
		return
	}
	text := "no file matches the pattern"
	if others > 0 {
		text = "no capture matches the pattern, but other files do"
	}
	f.Failed = append(f.Failed, fmt.Errorf("%s: %s", pattern, text))
}

// matches appends the names below dir that the parts of a pattern match. As in
// a shell, * and ** leave out names that begin with a dot. Directories that
// cannot be read have no names.
func matches(dir string, parts []string, to *[]string) {
	if len(parts) == 0 {
		*to = append(*to, strings.TrimSuffix(dir, "/"))
		return
	}
	part, rest := parts[0], parts[1:]
	if !strings.ContainsAny(part, "*?[") {
		path := dir + part
		if _, err := os.Stat(path); err == nil {
			if len(rest) > 0 {
				path += "/"
			}
			matches(path, rest, to)
		}
		return
	}
	at := dir
	if at == "" {
		at = "."
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return
	}
	if part == "**" && len(rest) > 0 {
		matches(dir, rest, to)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(part, ".") {
			continue
		}
		path := dir + e.Name()
		switch {
		case part == "**" && e.IsDir(): // not links, which may lead in a circle
			matches(path+"/", parts, to)
		case part == "**" && len(rest) == 0:
			*to = append(*to, path)
		case part == "**":
		default:
			if ok, _ := filepath.Match(part, e.Name()); ok {
				if len(rest) > 0 {
					path += "/"
				}
				matches(path, rest, to)
			}
		}
	}
}

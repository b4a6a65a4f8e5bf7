package batch

import (
	"fmt"
	"hash/fnv"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/ackscope/ackscope/unit"
)

// Capture is one unit of work: a capture file, or the files of a row that a rotating capture wrote.
type Capture struct {
	Name   string // in the tables; no two captures of a plan share it
	Files  []File
	Labels []unit.Label // in the order of the manifest's columns; captures may share them
}

// File is a file of a capture: its name in the tables, and where it is.
type File struct{ Name, Path string }

// missing is the value that stands in a folder's name for a label without one. Hive and the readers
// of its folders read it as NULL.
const missing = "__HIVE_DEFAULT_PARTITION__"

// Folder returns the folder of a partition below a table, as "build=1.4.2/region=eu". It is "." if
// no label makes partitions.
func Folder(labels []unit.Label) string {
	var parts []string
	for _, x := range labels {
		if x.Carried {
			continue
		}
		value := missing
		if x.Value != "" {
			value = escape(x.Value)
		}
		parts = append(parts, x.Name+"="+value)
	}
	return path.Join(append([]string{"."}, parts...)...)
}

// escape writes a value so that it is one harmless part of a path on every file system. Each byte
// other than a letter, a digit and "-_.~" becomes % and two digits, as in a URL. Readers of Hive's
// folders decode that.
func escape(value string) string {
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// mostFolder is the longest name of a folder, in bytes.
// Source: definition, NAME_MAX of the usual file systems is 255
const mostFolder = 255

// checkValue returns why a value cannot be a label, or "".
func checkValue(name, value string, carried bool) string {
	switch {
	case !utf8.ValidString(value):
		return "is not UTF-8"
	case len(value) > mostText:
		return fmt.Sprintf("has %d bytes: expected %d at most", len(value), mostText)
	case !carried && value == missing:
		return "stands for no value in the name of a folder: expected another one"
	case !carried && len(name)+1+len(escape(value)) > mostFolder:
		return fmt.Sprintf("is too long for the name of a folder of %d bytes (--partition names the columns that make "+
			"folders)", mostFolder)
	}
	return ""
}

// Part returns the part of its partition that a capture's rows go to, from 0.
func Part(name string, parts int) int { return int(hashOf(name, "part") % uint64(parts)) }

// Share is one of several equal shares of the captures: Index of Of, from 0.
type Share struct{ Index, Of int }

// Has reports whether a capture belongs to the share. The name is that of the capture, or what its
// files have in common. The zero value has all captures.
func (s Share) Has(name string) bool {
	return s.Of <= 1 || int(hashOf(name, "share")%uint64(s.Of)) == s.Index
}

// hashOf returns a hash of a name. Its purpose is hashed too: otherwise a share of 1 of 4 would have
// the captures of one part only. The names are those of an honest user, and a bad distribution is
// the only harm that chosen names can do.
func hashOf(name, purpose string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose + "\x00" + name))
	x := h.Sum64()
	// The low bits of FNV depend on the low bits of the input alone: mix the others in.
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd // Source: MurmurHash3's finalizer
	return x ^ x>>33
}

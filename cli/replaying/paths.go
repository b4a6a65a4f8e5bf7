package replaying

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/replay"
)

// captureEndings are the endings of the names of captures in a directory.
var captureEndings = []string{".pcap", ".pcapng", ".cap", ".ntar"}

func isCapture(name string) bool {
	for _, packed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, packed)
	}
	return slices.Contains(captureEndings, filepath.Ext(name))
}

// capturesOf returns the captures that paths name, each once. A file is taken as it is. A directory
// stands for all captures below it, by name. Links to files are followed, links to directories
// below a directory are not.
//
// It also returns the baselines in directories whose captures are gone, and the errors of what
// could not be read. Those do not stop the others.
func capturesOf(paths []string) (list, orphans []string, failed []error) {
	known := map[string]bool{}
	add := func(to *[]string, path string) {
		if clean := filepath.Clean(path); path == "-" || !known[clean] {
			known[clean] = true
			*to = append(*to, path)
		}
	}
	for _, p := range paths {
		if info, err := os.Stat(p); p == "-" || err != nil || !info.IsDir() {
			add(&list, p) // what is wrong with it is said when it is opened
			continue
		}
		found := 0
		// The separator lets a link to a directory be looked into.
		_ = filepath.WalkDir(p+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				failed = append(failed, err)
				found++ // an error says that it cannot be read, so the directory is not empty
			case d.IsDir():
			case isCapture(d.Name()):
				add(&list, path)
				found++
			case strings.HasSuffix(path, replay.BaselineSuffix):
				of := strings.TrimSuffix(path, replay.BaselineSuffix)
				if _, err := os.Lstat(of); isCapture(of) && errors.Is(err, fs.ErrNotExist) {
					add(&orphans, path)
				}
			}
			return nil
		})
		if found == 0 {
			failed = append(failed,
				fmt.Errorf("%s: no capture below it: expected files named *%s, plain or with .gz or .zst behind", p,
					strings.Join(captureEndings, ", *")))
		}
	}
	return list, orphans, failed
}

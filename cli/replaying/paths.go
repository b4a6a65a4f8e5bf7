package replaying

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ackscope/ackscope/capture/paths"
	"github.com/ackscope/ackscope/replay"
)

// capturesOf returns the captures that arguments name, each once.
//
// It also returns the baselines in directories whose captures are gone, and the errors of what
// could not be read. Those do not stop the others.
func capturesOf(arguments []string) (list, orphans []string, failed []error) {
	gone := map[string]bool{}
	found := paths.Find(arguments, func(path string) {
		of, ok := strings.CutSuffix(path, replay.BaselineSuffix)
		clean := filepath.Clean(path)
		if _, err := os.Lstat(of); ok && paths.IsCapture(of) && errors.Is(err, fs.ErrNotExist) && !gone[clean] {
			gone[clean] = true
			orphans = append(orphans, path)
		}
	})
	known := map[string]bool{}
	for _, path := range found.Paths {
		if clean := filepath.Clean(path); path == "-" || !known[clean] {
			known[clean] = true
			list = append(list, path)
		}
	}
	return list, orphans, found.Failed
}

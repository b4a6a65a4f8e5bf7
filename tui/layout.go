package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/tui/browser"
)

// loadLayout reads what was kept; what cannot be read is as if it were not there.
func loadLayout(l *browser.Layout, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		return
	}
	var kept browser.Layout
	if json.Unmarshal(b, &kept) != nil {
		return
	}
	kept.Bound()
	*l = kept
}

// saveLayout keeps the layout.
func saveLayout(l *browser.Layout, path string) error {
	if path == "" {
		return fmt.Errorf("no place to keep the layout: the home folder is not known")
	}
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var outputs outfile.Outputs
	f, err := outputs.Whole(path, outfile.Payload) // which flows somebody looks at is nobody else's business
	if err != nil {
		return err
	}
	if _, err := f.Write(append(b, '\n')); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit()
}

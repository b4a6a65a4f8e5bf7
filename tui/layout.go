package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/tui/browser"
)

// loadLayout reads the saved layout. It ignores a file that cannot be read.
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

// remember saves the layout for next time if the user changed it. A theme that the user did not
// choose with :theme stays that of the terminal. Where the layout cannot be written it is lost:
// that is no reason to end with an error.
func (m *Model) remember() {
	if m.o.Config == "" {
		return
	}
	now := *m.Layout
	if now.Theme == m.theme {
		now.Theme = m.kept.Theme
	}
	if !reflect.DeepEqual(now, m.kept) {
		_ = saveLayout(&now, m.o.Config)
	}
}

// saveLayout saves the layout.
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
	f, err := outputs.Whole(path, outfile.Payload) // readable by its owner only: it shows which flows a user looks at
	if err != nil {
		return err
	}
	if _, err := f.Write(append(b, '\n')); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit()
}

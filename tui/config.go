package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ackscope/ackscope/outfile"
)

// config is the layout: what :layout save keeps.
type config struct {
	Theme       string   `json:"theme,omitempty"`
	Columns     []string `json:"columns,omitempty"` // of the packet list; none for the usual
	Time        int      `json:"time"`
	FlowSort    int      `json:"flow_sort"`
	FlowReverse bool     `json:"flow_reverse"`
	List        int      `json:"list"` // rows that the packet list has more than usual
	Tree        int      `json:"tree"` // columns that the tree has more than usual
	Maximised   bool     `json:"-"`
}

func defaultConfig() config { return config{} }

func (c *config) resetPanes() { c.List, c.Tree, c.Maximised = 0, 0, false }

func (c *config) resize(rows, columns int) {
	c.List = min(max(c.List+rows, -40), 40)
	c.Tree = min(max(c.Tree+columns, -60), 60)
}

// load reads what was kept; what cannot be read is as if it were not there.
func (c *config) load(path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		return
	}
	kept := defaultConfig()
	if json.Unmarshal(b, &kept) != nil {
		return
	}
	kept.Time = min(max(kept.Time, 0), len(timeWords)-1)
	kept.FlowSort = min(max(kept.FlowSort, 0), len(flowColumns)-1)
	kept.resize(0, 0)
	*c = kept
}

// save keeps the layout.
func (c *config) save(path string) error {
	if path == "" {
		return fmt.Errorf("no place to keep the layout: the home folder is not known")
	}
	b, err := json.MarshalIndent(c, "", "  ")
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

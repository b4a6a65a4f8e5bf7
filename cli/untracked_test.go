package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/filter"
)

// Columns that no tracker tells are read without trackers. They are the same beside a column for which
// there are trackers.
func TestColumnsWithoutTrackers(t *testing.T) {
	columns := []string{"packets", "-T", "fields"}
	for _, f := range (&app.App{Registry: protocols()}).Table().Fields() {
		if f.Needs&^(filter.NeedFlow|filter.NeedFields) == 0 {
			columns = append(columns, "-e", f.Name)
		}
	}
	if len(columns) < 300 {
		t.Fatalf("%d words, expected all fields of packets", len(columns))
	}
	list := allCaptures(t)
	told := 0
	for i := 0; i < len(list); i += 8 {
		without, _, code := runText(append(columns, list[i])...)
		with, _, tracked := runText(append(columns, "-e", "finding", list[i])...)
		var b strings.Builder
		for line := range strings.Lines(with) {
			at := strings.LastIndexByte(line, '\t')
			b.WriteString(line[:at] + "\n")
			told += len(line) - at - len("\t\n")
		}
		if without != b.String() || code != tracked || code == 0 && without == "" {
			t.Errorf("%s: the columns differ without trackers (exits %d and %d)", filepath.Base(list[i]), code, tracked)
		}
	}
	if told == 0 {
		t.Error("no packet of any capture has a finding")
	}
}

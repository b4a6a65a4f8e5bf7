package cli

import (
	"iter"
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

// A line of text names the rules that found something at its packet, so it is listed with trackers.
func TestTextNamesFindings(t *testing.T) {
	list, named := allCaptures(t), 0
	for i := 0; i < len(list); i += 8 {
		text, _, _ := runText("packets", "-T", "tabs", list[i])
		rules, _, _ := runText("packets", "-T", "fields", "-e", "finding.rule", list[i])
		next, stop := iter.Pull(strings.Lines(text))
		for line := range strings.Lines(rules) {
			shown, _ := next()
			told := strings.FieldsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r == ',' })
			if strings.Contains(shown, "  [") != (len(told) > 0) {
				t.Errorf("%s: %q, expected the rules %q", filepath.Base(list[i]), shown, told)
			}
			for _, rule := range told {
				if named++; !strings.Contains(shown, "  ["+rule) {
					t.Errorf("%s: %q does not name %s", filepath.Base(list[i]), shown, rule)
				}
			}
		}
		stop()
	}
	if named == 0 {
		t.Error("no packet of any capture has a finding")
	}
}

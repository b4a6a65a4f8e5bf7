package filter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/filter"
)

func FuzzCompile(f *testing.F) {
	for _, c := range matching {
		f.Add(c.filter)
	}
	table, r := testTable(), testRecord(f)
	f.Fuzz(func(t *testing.T, text string) {
		x, err := table.Compile(text)
		if err != nil {
			var e *filter.Error
			if !errors.As(err, &e) {
				t.Fatalf("%q: %T", text, err)
			}
			if e.Offset < 0 || e.Offset > len(text) || e.Column() < 1 {
				t.Fatalf("%q: the error points at byte %d", text, e.Offset)
			}
			_ = e.Pointer()
			return
		}
		r.Reset()
		x.Match(r)
		if len(text) < 1000 {
			if y, err := table.Compile("!(" + text + ")"); strings.TrimSpace(text) != "" &&
				(err != nil || y.Match(r) == x.Match(r)) {
				t.Fatalf("%q and its negation agree (%v)", text, err)
			}
		}
	})
}

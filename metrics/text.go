package metrics

import (
	"math"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/printable"
)

// text writes the exposition.
type text struct {
	buf    []byte
	family *Family
}

// begin writes the head of a family.
func (t *text) begin(f *Family) {
	t.family = f
	t.buf = append(append(append(t.buf, "# HELP "...), f.Name...), ' ')
	t.buf = append(t.buf, strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(f.Help)...)
	t.buf = append(append(append(t.buf, "\n# TYPE "...), f.Name...), ' ')
	t.buf = append(append(t.buf, f.Type...), '\n')
}

// sample writes a series of the family, with the values of its labels in order.
func (t *text) sample(v float64, values ...string) { t.series("", v, "", values) }

func (t *text) series(suffix string, v float64, le string, values []string) {
	t.buf = append(append(t.buf, t.family.Name...), suffix...)
	names := t.family.Labels
	if len(names) > 0 || le != "" {
		t.buf = append(t.buf, '{')
		for i, name := range names {
			t.label(name, values[i])
		}
		if le != "" {
			t.label("le", le)
		}
		t.buf[len(t.buf)-1] = '}' // replaces the last comma
	}
	t.buf = append(t.buf, ' ')
	t.buf = append(appendValue(t.buf, v), '\n')
}

func (t *text) label(name, value string) {
	t.buf = append(append(t.buf, name...), '=', '"')
	for i, line := range strings.Split(value, "\n") {
		if i > 0 {
			t.buf = append(t.buf, '\\', 'n')
		}
		for _, c := range printable.Append(nil, line) {
			if c == '\\' || c == '"' {
				t.buf = append(t.buf, '\\')
			}
			t.buf = append(t.buf, c)
		}
	}
	t.buf = append(t.buf, '"', ',')
}

func appendValue(to []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(to, "+Inf"...)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.AppendInt(to, int64(v), 10)
	}
	return strconv.AppendFloat(to, v, 'g', -1, 64)
}

// histogram counts values by bucket.
type histogram struct {
	counts []uint64 // one more than Buckets
	sum    float64
}

func (h *histogram) observe(v float64) {
	if h.counts == nil {
		h.counts = make([]uint64, len(Buckets)+1)
	}
	i := 0
	for i < len(Buckets) && v > Buckets[i] {
		i++
	}
	h.counts[i]++
	h.sum += v
}

// write writes the series of the histogram, even if it is empty.
func (h *histogram) write(t *text, values ...string) {
	n := uint64(0)
	for i := 0; i <= len(Buckets); i++ {
		if h.counts != nil {
			n += h.counts[i]
		}
		le := "+Inf"
		if i < len(Buckets) {
			le = string(appendValue(nil, Buckets[i]))
		}
		t.series("_bucket", float64(n), le, values)
	}
	t.series("_sum", h.sum, "", values)
	t.series("_count", float64(n), "", values)
}

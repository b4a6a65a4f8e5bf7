package draw

import (
	"slices"
	"strings"

	"github.com/ackscope/ackscope/scale"
)

// sparks are the heights of a bar, one cell wide.
var sparks = []rune(" ▁▂▃▄▅▆▇█")

// Sparkline draws counts as bars of one cell each, scaled to the largest count.
// A count of 0 is a blank.
func Sparkline[T int | uint32](counts []T) string {
	if len(counts) == 0 {
		return ""
	}
	most := int64(slices.Max(counts))
	var b strings.Builder
	for _, n := range counts {
		i := 0
		if n > 0 {
			i = min(scale.Level(int64(n), most, len(sparks)-1), len(sparks)-1)
		}
		b.WriteRune(sparks[i])
	}
	return b.String()
}

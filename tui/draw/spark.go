package draw

import "github.com/ackscope/ackscope/scale"

// sparks are the heights of a bar that is one cell wide.
var sparks = []rune(" ▁▂▃▄▅▆▇█")

// Spark gives a bar, one cell wide, for a value beside the largest one; of none a blank.
func Spark(v, most int64) rune {
	i := 0
	if v > 0 {
		i = scale.Level(v, most, len(sparks)-1)
	}
	return sparks[min(i, len(sparks)-1)]
}

package machine

import (
	"strconv"
	"strings"
)

// Ranges formats rising numbers as at most so many ranges. For example, it formats 3, 4,
// 5, 9 as "3–5, 9". It leaves out ranges after the first one.
func Ranges(list []int64, most int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		part := strconv.FormatInt(list[i], 10)
		if j > i {
			part += "–" + strconv.FormatInt(list[j], 10)
		}
		parts = append(parts, part)
		i = j + 1
	}
	if n := len(parts); n > most {
		parts = append(parts[:1:1], append([]string{"…"}, parts[n-most+1:]...)...)
	}
	return strings.Join(parts, ", ")
}

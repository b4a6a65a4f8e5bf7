package machine

import "strconv"

// Count formats a number of things in words that agree with it: for example,
// Count(1, "packet was", "packets were") returns "1 packet was".
func Count(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatUint(n, 10) + " " + many
}

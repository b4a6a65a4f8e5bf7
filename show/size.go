package show

import (
	"strconv"

	"github.com/dustin/go-humanize"
)

// Octets formats bits as bytes, with eighths if needed.
func Octets(bits uint64) string {
	if bits == 0 {
		return ""
	}
	s := Grouped(bits / 8)
	if rest := bits % 8; rest != 0 {
		s += strconv.FormatFloat(float64(rest)/8, 'f', -1, 64)[1:]
	}
	return s
}

// Bytes formats bits as an amount of bytes: "118 kB".
func Bytes(bits uint64) string { return humanize.Bytes(bits / 8) }

// Share formats a part of a whole in percent.
func Share(part, whole uint64) string {
	if whole == 0 {
		return ""
	}
	return Percent(float64(part) / float64(whole))
}

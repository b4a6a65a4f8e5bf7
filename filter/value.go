package filter

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Kind is the type of a field's values. It decides which literals the field is
// compared with.
type Kind uint8

const (
	Heading  Kind = iota // no value: a field that exists or does not
	Uint                 // 0 to 2^64-1
	Int                  // -2^63 to 2^63-1
	Bool                 // true or false
	Float                // a float64
	Duration             // nanoseconds; plain numbers are seconds
	Time                 // nanoseconds since the Unix epoch; plain numbers are seconds since then
	Bytes                // a byte string
	Text                 // UTF-8
	Address              // an IP address; literals may be networks
)

var kindWords = [...]string{
	"heading", "unsigned integer", "integer", "boolean", "number", "duration", "time", "bytes",
	"text", "IP address",
}

func (k Kind) String() string { return kindWords[k] }

// takes describes the literals that a kind is compared with, for messages.
func (k Kind) takes() string {
	switch k {
	case Uint, Int:
		return "an integer such as 10 or 0x1f"
	case Bool:
		return "true or false"
	case Float:
		return "a number such as 0.5"
	case Duration:
		return "a duration such as 80ms, or seconds"
	case Time:
		return `a time such as "2026-11-21 09:30:00.5" (UTC), or seconds since 1970`
	case Bytes:
		return `bytes such as 0a:1b:2c or "text"`
	case Text:
		return `text such as "abc"`
	case Address:
		return "an address such as 10.0.0.1, fe80::1 or 10.0.0.0/8"
	}
	return "nothing"
}

// durations and sizes are the unit suffixes of literals.
var durations = map[string]int64{
	"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9, "min": 60e9, "h": 3600e9,
}

var sizes = map[string]int64{
	"B": 1, "k": 1e3, "kB": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "kiB": 1 << 10, "MiB": 1 << 20,
	"GiB":   1 << 30,
	"bytes": 1, "byte": 1,
}

// splitUnit splits a decimal number from its unit. Hexadecimal numbers have
// none.
func splitUnit(s string) (number, unit string) {
	if len(s) > 1 && s[0] == '0' && strings.ContainsRune("xXbBoO", rune(s[1])) && s != "0B" {
		return s, ""
	}
	i := 0
	for i < len(s) {
		c := s[i]
		if digit(c) || c == '.' || (c == '-' || c == '+') && i == 0 {
			i++
			continue
		}
		if (c == 'e' || c == 'E') && i > 0 && i+1 < len(s) &&
			(digit(s[i+1]) || i+2 < len(s) && (s[i+1] == '-' || s[i+1] == '+') && digit(s[i+2])) {
			i += 2
			continue
		}
		break
	}
	return s[:i], s[i:]
}

// decimal parses a decimal number and multiplies it by scale, without rounding
// errors: "1.5" at 1e9 is 1500000000. Digits beyond the scale are dropped.
func decimal(s string, scale int64) (int64, bool) {
	negative := strings.HasPrefix(s, "-")
	body := strings.TrimLeft(s, "+-")
	whole, fraction, point := strings.Cut(body, ".")
	if strings.ContainsAny(body, "eE") {
		f, err := strconv.ParseFloat(s, 64)
		f *= float64(scale)
		return int64(math.Round(f)), err == nil && math.Abs(f) < 1<<62
	}
	if whole == "" && fraction == "" {
		return 0, false
	}
	var n int64
	if whole != "" {
		v, err := strconv.ParseUint(whole, 10, 63)
		if err != nil || int64(v) > math.MaxInt64/scale {
			return 0, false
		}
		n = int64(v) * scale
	}
	if point {
		if strings.Trim(fraction, "0123456789") != "" {
			return 0, false
		}
		for _, c := range []byte(fraction) {
			if scale%10 != 0 { // binary sizes: 1.5KiB
				f, err := strconv.ParseFloat("0."+fraction, 64)
				n += int64(f * float64(scale))
				return sign(n, negative), err == nil
			}
			scale /= 10
			n += int64(c-'0') * scale
		}
	}
	return sign(n, negative), n >= 0
}

func sign(n int64, negative bool) int64 {
	if negative {
		return -n
	}
	return n
}

// parseTime parses a wall-clock time, in UTC unless it has an offset.
func parseTime(s string) (int64, bool) {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
		"2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02 15:04", "2006-01-02", "Jan 2, 2006 15:04:05.999999999", "Jan 2, 2006 15:04", "Jan 2, 2006",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			if y := t.Year(); y < 1678 || y > 2261 {
				return 0, false
			}
			return t.UnixNano(), true
		}
	}
	return 0, false
}

// parseBytes parses 0a:1b:2c, 0a-1b-2c, 0a.1b.2c, 0a1b2c and 0x0a1b.
func parseBytes(s string) ([]byte, bool) {
	if rest, ok := strings.CutPrefix(s, "0x"); ok {
		s = rest
	}
	if len(s) == 1 {
		s = "0" + s
	}
	var out []byte
	for i := 0; i < len(s); {
		b, ok := unhex(s, i)
		if !ok {
			return nil, false
		}
		out = append(out, b)
		if i += 2; i < len(s) && (s[i] == ':' || s[i] == '-' || s[i] == '.') {
			if i++; i == len(s) {
				return nil, false
			}
		}
	}
	return out, len(out) > 0
}

// parseInteger parses an integer in Go's or C's notation.
func parseInteger(s string) (magnitude uint64, negative, ok bool) {
	body := s
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		body, negative = s[1:], s[0] == '-'
	}
	v, err := strconv.ParseUint(body, 0, 64)
	return v, negative, err == nil && !strings.Contains(body, "_")
}

// appendSeconds formats seconds with nanoseconds, as tshark does.
func appendSeconds(to []byte, ns int64) []byte {
	if ns < 0 {
		to, ns = append(to, '-'), -ns
	}
	to = strconv.AppendInt(to, ns/1e9, 10)
	to = append(to, '.')
	f := ns % 1e9
	for scale := int64(1e8); scale > 0; scale /= 10 {
		to = append(to, '0'+byte(f/scale%10))
	}
	return to
}

// appendTime formats an instant in local time, as tshark does.
func appendTime(to []byte, ns int64) []byte {
	return machine.Instant(ns).Time().Local().AppendFormat(to, "Jan _2, 2006 15:04:05.000000000 MST")
}

func appendHex(to, b []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range b {
		to = append(to, digits[c>>4], digits[c&15])
	}
	return to
}

// network is a network or one address.
type network struct {
	prefix netip.Prefix
	addr   netip.Addr
}

func parseNetwork(s string) (network, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return network{prefix: p.Masked(), addr: p.Addr()}, true
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return network{}, false
	}
	return network{prefix: netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), addr: a.Unmap()}, true
}

func (n network) contains(a netip.Addr) bool { return n.prefix.Contains(a) }

package filter

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// The functions below convert a literal to the type of the operand that it is
// compared with, or fail with its position.

func (c *compiler) expected(o *operand, l *literal) {
	suggestion := ""
	if len(o.words) > 0 && !l.char {
		suggestion = Nearest(l.text, o.words)
	}
	takes := o.kind.takes()
	if len(o.words) > 0 && len(o.words) <= 12 {
		takes = "one of " + strings.Join(o.words, ", ")
		if o.enum != nil {
			takes += ", or an integer"
		}
	}
	if !l.quoted && suggestion == "" && c.looksLikeField(l.text) {
		suggestion = c.table.Suggest(l.text)
	}
	c.fail(l.at, suggestion, "%s is %s: expected %s, found %s", o.name, article(o.kind), takes, c.source(l.at))
}

// scaled splits a number with a unit into the number and a factor in the
// operand's unit. For example, 80ms for "ms" is 80, and 1kB for "bytes" is
// 1000. The factor is times/of.
func (c *compiler) scaled(o *operand, l *literal) (number string, times, of int64) {
	number, unit := splitUnit(l.text)
	if unit == "" || number == "" {
		return l.text, 1, 1
	}
	if ns, ok := durations[unit]; ok {
		if base, ok := durations[o.unit]; ok {
			return number, ns, base
		}
	} else if n, ok := sizes[unit]; ok && durations[o.unit] == 0 {
		return number, n, 1
	} else if unit == "%" && o.kind == Float && o.unit == "" {
		return number, 1, 100
	}
	if durations[unit] != 0 || sizes[unit] != 0 || unit == "%" {
		what := "has no unit"
		if o.unit != "" {
			what = "is in " + o.unit
		}
		c.fail(l.at, "", "%s %s: expected a number without %s", o.name, what, unit)
	}
	return l.text, 1, 1
}

func (c *compiler) uint(o *operand, l *literal) uint64 {
	if l.char {
		return uint64(l.text[0])
	}
	if o.kind == Bool {
		switch strings.ToLower(l.text) {
		case "true", "1":
			return 1
		case "false", "0":
			return 0
		}
		if v, negative, ok := parseInteger(l.text); ok && !negative && !l.quoted {
			return min(v, 1)
		}
		c.expected(o, l)
	}
	for v, word := range o.enum {
		if strings.EqualFold(word, l.text) {
			return v
		}
	}
	if l.quoted {
		c.expected(o, l)
	}
	number, times, of := c.scaled(o, l)
	if times != 1 || of != 1 {
		v, ok := decimal(number, times)
		if !ok || v < 0 {
			c.expected(o, l)
		}
		if v%of != 0 {
			c.fail(l.at, "", "%s is a whole number of %s: %s is none", o.name, o.unit, l.text)
		}
		return uint64(v / of)
	}
	v, negative, ok := parseInteger(number)
	if !ok {
		c.expected(o, l)
	}
	if negative && v != 0 {
		c.fail(l.at, "", "%s is never negative", o.name)
	}
	return v
}

func (c *compiler) int(o *operand, l *literal) int64 {
	if o.kind == Time && l.quoted {
		if v, ok := parseTime(l.text); ok {
			return v
		}
		c.expected(o, l)
	}
	if l.quoted || l.char {
		c.expected(o, l)
	}
	if o.kind == Duration || o.kind == Time {
		number, unit := splitUnit(l.text)
		scale := int64(1e9)
		if unit != "" {
			if scale = durations[unit]; scale == 0 || o.kind == Time && unit != "s" {
				c.expected(o, l)
			}
		}
		v, ok := decimal(number, scale)
		if !ok {
			c.expected(o, l)
		}
		return v
	}
	number, times, of := c.scaled(o, l)
	if times != 1 || of != 1 {
		v, ok := decimal(number, times)
		if !ok || v%of != 0 {
			c.expected(o, l)
		}
		return v / of
	}
	v, negative, ok := parseInteger(number)
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	if !ok || v > limit {
		c.expected(o, l)
	}
	if negative {
		return int64(-v)
	}
	return int64(v)
}

func (c *compiler) float(o *operand, l *literal) float64 {
	if l.quoted || l.char {
		c.expected(o, l)
	}
	number, times, of := c.scaled(o, l)
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || strings.ContainsAny(number, "_xX") {
		whole, negative, ok := parseInteger(number)
		if !ok {
			c.expected(o, l)
		}
		if v = float64(whole); negative {
			v = -v
		}
	}
	return v * float64(times) / float64(of)
}

// bytes converts a literal to bytes, for the kinds Bytes and Text.
func (c *compiler) bytes(o *operand, l *literal) []byte {
	if l.quoted || l.char {
		if len(o.words) > 0 && l.quoted && !slices.Contains(o.words, l.text) {
			c.expected(o, l)
		}
		return []byte(l.text)
	}
	if o.kind == Text {
		if len(o.words) > 0 && !slices.Contains(o.words, l.text) {
			c.expected(o, l)
		}
		if f, ok := c.table.Lookup(l.text); ok {
			c.fail(l.at, strconv.Quote(l.text), "%s is a field; text that reads like one stands in quotes", f.Name)
		}
		return []byte(l.text)
	}
	v, ok := parseBytes(l.text)
	if !ok {
		c.expected(o, l)
	}
	return v
}

func (c *compiler) network(o *operand, l *literal) network {
	n, ok := parseNetwork(l.text)
	if !ok || l.char {
		c.expected(o, l)
	}
	return n
}

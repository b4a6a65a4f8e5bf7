package gamelog

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// stamp is a time in a log's own unit, split so that nanoseconds since 1970 lose no digit.
type stamp struct {
	whole    int64
	fraction float64 // 0 to 1
}

// since returns the time from base to s.
func (s stamp) since(base stamp) float64 {
	return float64(s.whole-base.whole) + (s.fraction - base.fraction)
}

// quantum returns the last decimal place of the time that is not 0, from 1 to 1e-9.
func (s stamp) quantum() float64 {
	q, ticks := 1e-9, int64(math.Round(s.fraction*1e9))
	for q < 1 && ticks%10 == 0 {
		q, ticks = q*10, ticks/10
	}
	return min(q, 1)
}

// wholeMost bounds the whole part of a time, so that differences do not overflow. Nanoseconds
// since 1970 stay below it until 2116. Source: bound, half of the range of 64 bits
const wholeMost = 1 << 62

// timeOf reads the time of a line. The reason says why there is none.
func timeOf(fields map[string]json.RawMessage) (at stamp, written bool, reason string) {
	for _, key := range []string{"t", "time", "ts", "timestamp"} {
		raw, ok := fields[key]
		if !ok {
			continue
		}
		if date, ok := text(raw); ok {
			t, err := time.Parse(time.RFC3339Nano, date)
			if err != nil {
				return at, true, strconv.Quote(key) + " is neither a number nor a date as 2026-01-02T15:04:05.678Z"
			}
			return stamp{t.Unix(), float64(t.Nanosecond()) / 1e9}, true, ""
		}
		at, ok = parseStamp(string(raw))
		if !ok {
			return at, false, strconv.Quote(key) + " is no time: expected a number below 4.6e18 or a date"
		}
		return at, false, ""
	}
	return at, false, `it has no time "t"`
}

// parseStamp reads a number as exactly as it is written.
func parseStamp(s string) (stamp, bool) {
	digits, after, _ := strings.Cut(s, ".")
	if !strings.ContainsAny(s, "eE") {
		w, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || w >= wholeMost || w <= -wholeMost {
			return stamp{}, false
		}
		if after == "" {
			return stamp{w, 0}, true
		}
		f, err := strconv.ParseFloat("0."+after, 64)
		if err != nil {
			return stamp{}, false
		}
		if strings.HasPrefix(digits, "-") {
			return stamp{w - 1, 1 - f}, true
		}
		return stamp{w, f}, true
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(v) >= wholeMost {
		return stamp{}, false
	}
	w := math.Floor(v)
	return stamp{int64(w), v - w}, true
}

// text reads a JSON string.
func text(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// number reads a JSON number. It refuses those that no float64 holds.
func number(raw json.RawMessage) (float64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	return v, err == nil
}

// whole reads a JSON number without a fraction.
func whole(raw json.RawMessage) (int64, bool) {
	if len(raw) == 0 || raw[0] == '"' {
		return 0, false
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	return v, err == nil
}

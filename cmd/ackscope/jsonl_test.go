package main

import (
	"encoding/json"
	"math"
	"testing"
	"testing/quick"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Whatever the bytes of a text are, encoding/json reads what it would write.
func TestJSONString(t *testing.T) {
	check := func(s string) bool {
		var got string
		if err := json.Unmarshal(appendJSONString(nil, s), &got); err != nil {
			t.Logf("%q: %v", s, err)
			return false
		}
		standard, err := json.Marshal(s)
		if err != nil {
			return false
		}
		var want string
		return json.Unmarshal(standard, &want) == nil && got == want
	}
	for _, s := range []string{"", "a\"b\\c", "\x00\x1f\x7f\n\r\t", "\xff\xfe", "é\u2028 \U0001f3ae", "\xed\xa0\x80"} {
		if !check(s) {
			t.Errorf("%q reads back otherwise", s)
		}
	}
	if err := quick.Check(func(b []byte) bool { return check(string(b)) }, nil); err != nil {
		t.Error(err)
	}
}

func TestJSONTime(t *testing.T) {
	var c clock
	check := func(ns int64) bool {
		return string(c.append(nil, machine.Instant(ns))) == time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z")
	}
	for _, ns := range []int64{0, 1, -1, -1e9, 1e9, 1795238666301206000, 1795238666301206001, math.MaxInt64, math.MinInt64} {
		if !check(ns) {
			t.Errorf("%d: %s", ns, c.append(nil, machine.Instant(ns)))
		}
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func TestJSONFloat(t *testing.T) {
	for _, c := range []struct {
		v      float64
		digits int
		want   string
	}{
		{0, 6, "0"},
		{68.25, 6, "68.25"},
		{0.1 + 0.2, 6, "0.3"},
		{1.0000004, 6, "1"},
		{1.0000006, 6, "1.000001"},
		{-2.5, 1, "-2.5"},
		{-0.04, 1, "0"},
		{1e300, 2, ""},
		{123456789.5, 8, "123456789.5"},
		{math.NaN(), 3, "null"},
		{math.Inf(1), 3, "null"},
		{0.00000001, 8, "0.00000001"},
	} {
		var o object
		o.begin()
		o.float("v", c.v, c.digits)
		o.buf = append(o.buf, '}')
		var got map[string]any
		if err := json.Unmarshal(o.buf, &got); err != nil {
			t.Errorf("%v: %v in %s", c.v, err, o.buf)
		}
		if want := `{"v":` + c.want + `}`; c.want != "" && string(o.buf) != want {
			t.Errorf("%v: %s, expected %s", c.v, o.buf, want)
		}
	}
}

func BenchmarkEventObject(b *testing.B) {
	var o object
	at := machine.Instant(1795238666301206000)
	b.ReportAllocs()
	for b.Loop() {
		at += 1000
		o.begin()
		o.uint("frame", 77)
		o.time("time", at)
		o.str("protocol", "gaffer")
		o.float("rtt_ms", 68.271113, 6)
		o.buf = append(o.buf, '}', '\n')
	}
}

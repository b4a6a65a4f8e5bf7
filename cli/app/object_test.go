package app

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

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
		var o Object
		o.Begin()
		o.Float("v", c.v, c.digits)
		o.Buf = append(o.Buf, '}')
		var got map[string]any
		if err := json.Unmarshal(o.Buf, &got); err != nil {
			t.Errorf("%v: %v in %s", c.v, err, o.Buf)
		}
		if want := `{"v":` + c.want + `}`; c.want != "" && string(o.Buf) != want {
			t.Errorf("%v: %s, expected %s", c.v, o.Buf, want)
		}
	}
}

func BenchmarkEventObject(b *testing.B) {
	var o Object
	at := machine.Instant(1795238666301206000)
	b.ReportAllocs()
	for b.Loop() {
		at += 1000
		o.Begin()
		o.Uint("frame", 77)
		o.Time("time", at)
		o.Str("protocol", "gaffer")
		o.Float("rtt_ms", 68.271113, 6)
		o.Buf = append(o.Buf, '}', '\n')
	}
}

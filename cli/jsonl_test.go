package cli

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

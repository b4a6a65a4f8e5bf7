package export

import (
	"encoding/json"
	"math"
	"testing"
	"testing/quick"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// TestJSONString: encoding/json reads AppendString's output and its own to the
// same text, whatever the bytes are.
func TestJSONString(t *testing.T) {
	check := func(s string) bool {
		var got string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
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
	var c Clock
	check := func(ns int64) bool {
		return string(c.Append(nil, machine.Instant(ns))) == time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z")
	}
	for _, ns := range []int64{
		0, 1, -1, -1e9, 1e9, 1795238666301206000, 1795238666301206001, math.MaxInt64,
		math.MinInt64,
	} {
		if !check(ns) {
			t.Errorf("%d: %s", ns, c.Append(nil, machine.Instant(ns)))
		}
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

package show

import "testing"

// TestLossOfWay: loss is one figure where it is known, and bounds where it is not.
func TestLossOfWay(t *testing.T) {
	for _, c := range []struct {
		way  way
		want string
	}{
		{way{}, "unknown"},
		{way{sent: 1000, least: 3, most: 3}, "0.3%"},
		{way{sent: 1000, least: 30, most: 110}, "between 3.0% and 11.0%"},
		{way{sent: 100000, least: 301, most: 302}, "0.3%"},
		{way{sent: 1000, least: 0, most: 20}, "between 0.0% and 2.0%"},
		{way{sent: 10, least: 0, most: 10}, "unknown"},
	} {
		if got := c.way.text(); got != c.want {
			t.Errorf("%+v: %s, expected %s", c.way, got, c.want)
		}
	}
}

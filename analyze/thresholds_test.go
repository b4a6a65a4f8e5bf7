package analyze

import (
	"math"
	"testing"
	"time"
)

// TestThresholdsReadBack: Set takes what Text prints, and changes nothing else.
func TestThresholdsReadBack(t *testing.T) {
	for _, text := range []map[string]string{
		{},
		{
			"loss": "7%", "rtt": "1.5s", "jitter": "0s", "stall": "off", "idle": "2m0s",
			"resends": "off", "bandwidth": "0.5kB/s",
		},
		{
			"loss": "off", "rtt": "off", "jitter": "off", "stall": "2m0s", "idle": "off",
			"resends": "12.5%", "bandwidth": "off",
		},
	} {
		want := DefaultThresholds()
		for name, value := range text {
			if err := want.Set(name, value); err != nil {
				t.Fatalf("%s=%s: %v", name, value, err)
			}
		}
		var got Thresholds
		for i := range ThresholdList {
			x := &ThresholdList[i]
			value := want.Text(x)
			if err := got.Set(x.Name, value); err != nil {
				t.Errorf("%s=%s: %v", x.Name, value, err)
			}
			if given := text[x.Name]; given != "" && value != given {
				t.Errorf("%s=%s is printed as %s", x.Name, given, value)
			}
		}
		if got != want {
			t.Errorf("%+v reads back as %+v", want, got)
		}
	}
}

func TestThresholdUnits(t *testing.T) {
	var x Thresholds
	for value, want := range map[string]float64{
		"1000B/s": 1000, "1kB/s": 1000, "2MB/s": 2e6, "8kbit/s": 1000, "1Mbit/s": 125e3, "off": math.Inf(1), "1.5 kB/s": 1500,
	} {
		if err := x.Set("bandwidth", value); err != nil || x.Bandwidth != want {
			t.Errorf("%s: %v, %v", value, x.Bandwidth, err)
		}
	}
	if err := x.Set("stall", "1.5s"); err != nil || x.Stall != 1500*time.Millisecond {
		t.Errorf("%v, %v", x.Stall, err)
	}
}

// TestThresholdErrors: a value of another kind is refused, and changes nothing.
func TestThresholdErrors(t *testing.T) {
	for _, c := range [][2]string{
		{"loss", "3"},
		{"loss", "0.03"},
		{"loss", "101%"},
		{"loss", "-1%"},
		{"loss", "NaN%"},
		{"loss", "%"},
		{"loss", ""},
		{"rtt", "150"},
		{"rtt", "-1ms"},
		{"rtt", "3%"},
		{"rtt", ""},
		{"bandwidth", "125"},
		{"bandwidth", "1e400kB/s"},
		{"bandwidth", "-1B/s"},
		{"bandwidth", "Inf B/s"},
		{"bandwidth", "1GB"},
		{"speed", "3%"},
		{"", ""},
	} {
		x := DefaultThresholds()
		if err := x.Set(c[0], c[1]); err == nil || x != DefaultThresholds() {
			t.Errorf("%s=%s: %v, %+v", c[0], c[1], err, x)
		}
	}
}

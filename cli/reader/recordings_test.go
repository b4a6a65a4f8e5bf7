package reader

import (
	"strconv"
	"testing"
)

// The position of a file counts from 1 over all files. A name takes precedence
// over a position.
func TestRecordingOf(t *testing.T) {
	list := []*Recording{
		{Paths: []string{"a/x.pcap", "a/y.pcap"}, Files: 4},
		{Paths: []string{"b/x.pcap"}, First: 2, Files: 4},
		{Paths: []string{"4:1"}, First: 3, Files: 4},
	}
	for _, c := range []struct {
		file string
		of   int // -1 for none
		at   int
	}{
		{"y.pcap", 0, 1},
		{"x.pcap", -1, 0},
		{"a/x.pcap", 0, 0},
		{"3", 1, 0},
		{"2", 0, 1},
		{"4:1", 2, 0},
		{"4", 2, 0},
		{"5", -1, 0},
		{"0", -1, 0},
		{"", -1, 0},
	} {
		r, at, err := RecordingOf(list, "--flow", c.file)
		if (err == nil) != (c.of >= 0) || err == nil && (r != list[c.of] || at != c.at) {
			t.Errorf("%q: %v in %v, %v", c.file, at, r, err)
		}
	}
	for text, want := range map[string]FlowName{
		"": {}, "3": {"", 3}, "a:3": {"a", 3}, "a:b:3": {"a:b", 3},
		"2:3": {"2", 3},
	} {
		if got, err := ParseFlow(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", ":3", "a:", "a", "-1", "a:0", strconv.Itoa(1 << 40)} {
		if got, err := ParseFlow(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

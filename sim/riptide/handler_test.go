package riptide

import (
	"slices"
	"testing"
)

func TestParseHandler(t *testing.T) {
	for _, x := range []struct {
		text string
		asks bool
		want []Decision
	}{
		{"none", false, nil},
		{"accept", true, []Decision{{Kind: Accept}}},
		{"reject:a: b,never", true, []Decision{{Kind: Reject, Text: "a: b"}, {Kind: Never}}},
		{"reject:", true, []Decision{{Kind: Reject}}},
	} {
		h, asks, err := ParseHandler(x.text)
		if err != nil || asks != x.asks || !slices.Equal(h.Decisions, x.want) {
			t.Errorf("%q: %v, %v, %v; expected %v, %v", x.text, h.Decisions, asks, err, x.want, x.asks)
		}
	}
	for _, text := range []string{"", "accept,", "accept:x", "never:1", "later", "none,accept"} {
		if _, _, err := ParseHandler(text); err == nil {
			t.Errorf("%q: expected an error", text)
		}
	}
	h, _, err := ParseHandler("accept,never")
	if err != nil || h.of(0).Kind != Accept || h.of(1).Kind != Never || h.of(7).Kind != Never {
		t.Errorf("%v, %v: expected the last decision for all clients after it", h, err)
	}
	if d := (&Handler{}).of(3); d.Kind != Accept {
		t.Errorf("without decisions: %v, expected to accept", d)
	}
}

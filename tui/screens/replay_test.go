package screens

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestWithBits holds that bits are drawn from the value, not read out of its text.
func TestWithBits(t *testing.T) {
	for _, c := range []struct {
		text string
		bits machine.Bits
		want string
	}{
		{"0x0f", machine.Hex(0x0f, 2), "0x0f  00001111"},
		{"0x01ff", machine.Hex(0x1ff, 4), "0x01ff  00000001 11111111"},
		{"0x10", machine.Bits{}, "0x10"},
		{"no packet: 0x", machine.Bits{}, "no packet: 0x"},
	} {
		if got := withBits(c.text, c.bits); got != c.want {
			t.Errorf("%s: %q, expected %q", c.text, got, c.want)
		}
	}
}

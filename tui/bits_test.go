package tui

import (
	"strings"
	"testing"
)

// Ack bits mean what the protocol's document says. In reliable's header bit 0
// is the ack itself; in Riptide's it is the ID below.
func TestAckBits(t *testing.T) {
	// 0xf7fbffff lacks bits 18 and 27; 0xe03f lacks bits 6 to 12.
	for _, c := range []struct{ capture, keys, want string }{
		{"reliable-loss10.client.pcap.gz", "<Enter>300GS", "they stand for 154 down to 123; missing 136 127"},
		{
			"u210_falseack.server.pcapng.gz", "<Enter>2387GS",
			"they stand for 164 down to 149; missing 158 157 156 155 154 153 152",
		},
	} {
		m := openModel(t, c.capture)
		screenOf(t, m, 160, 50)
		press(m, c.keys)
		text := textOf(screenOf(t, m, 160, 50))
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: the screen does not say %q:\n%s", c.capture, c.want, text)
		}
	}
}

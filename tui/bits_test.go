package tui

import (
	"strings"
	"testing"
)

// The ack bits of a header stand for what its protocol's document says: bit 0 for
// ack itself in reliable's, for the id below it in Riptide's.
func TestAckBits(t *testing.T) {
	// 0xf7fbffff lacks the bits 18 and 27; 0xe03f those from 6 to 12.
	for _, c := range []struct{ capture, keys, want string }{
		{"reliable-loss10.client.pcap.gz", "<Enter>300GS", "they stand for 154 down to 123; missing 136 127"},
		{"u210_falseack.server.pcapng.gz", "<Enter>2387GS",
			"they stand for 164 down to 149; missing 158 157 156 155 154 153 152"},
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

package truth

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// profileFile writes a profile based on reliable, with one setting a line from line 5 on.
func profileFile(t *testing.T, settings ...string) string {
	t.Helper()
	text := "protocol: gaffer\nname: mine\nbase: reliable\nsettings:\n"
	for _, s := range settings {
		text += "  " + s + "\n"
	}
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUnknownSizes reads a capture without the sizes of the buffers. The loss that the
// libraries computed over them is then unknown. What was received and acked does not rest
// on them, and stays as it is with the sizes.
func TestUnknownSizes(t *testing.T) {
	unknown := profileFile(t, "sent_buffer: 0", "receive_window: 0", "reassembly_buffer: 0")
	for _, run := range []string{"reliable-loss10.client.pcap.gz", "reliable-frag-heavy.server.pcap.gz"} {
		capture := testenv.Capture(t, run)
		var flow struct {
			A *float64 `json:"loss_a"`
			B *float64 `json:"loss_b"`
		}
		out := testenv.Output(t, testenv.Ackscope(t), "flows", "--json", "--profiles", unknown, capture)
		if err := json.Unmarshal(out, &flow); err != nil {
			t.Fatal(err)
		}
		if flow.A != nil || flow.B != nil {
			t.Errorf("%s: the loss over a buffer of unknown size is known: %s", run, out)
		}
		events := func(with ...string) []string {
			args := append([]string{"events", "--json"}, append(with, capture)...)
			lines := strings.Split(string(testenv.Output(t, testenv.Ackscope(t), args...)), "\n")
			for i, l := range lines {
				lines[i] = strings.Replace(l, `"dialect":"mine"`, `"dialect":"reliable"`, 1)
			}
			return lines
		}
		if want, got := events(), events("--profiles", unknown); !slices.Equal(want, got) {
			t.Errorf("%s: %d events without the sizes, and %d others with them", run, len(got), len(want))
		}
	}
}

// TestImpossibleSettings: a setting that cannot be is refused with its line.
func TestImpossibleSettings(t *testing.T) {
	for _, c := range []struct{ setting, want string }{
		{"sent_buffer: -1", "line 6: sent_buffer: expected 1 to 32768, or 0"},
		{"sent_buffer: 40000", "line 6: sent_buffer: expected"},
		{"receive_window: 1", "line 6: receive_window: expected 2 to 32768, or 0"},
		{"duplicates: maybe", "line 6: duplicates: expected one of refused, delivered, unknown"},
		{"zeroed_ack_bits: 0x100000000", "line 6: zeroed_ack_bits: expected"},
		{"messages: {form: by-id}", "line 6: messages: types and max_per_packet"},
		{"messages: {send_queue: -1}", "line 6: messages.send_queue: expected"},
		{"form: fixed", "line 5: fragments: those of reliable need form reliable"}, // of the base: the line of all settings
	} {
		path := profileFile(t, "ports: [1]", c.setting)
		out, err := exec.Command(testenv.Ackscope(t), "flows", "--profiles", path,
			testenv.Capture(t, "reliable-clean.client.pcap.gz")).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "mine.yaml: "+c.want) {
			t.Errorf("%s: %v, %s, expected %q", c.setting, err, out, c.want)
		}
	}
}

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
)

// TestOverviewDamaged: the record of a packet has a length that no packet has. The overview shows
// what stands before it, and names the damage.
func TestOverviewDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pcap")
	var out, trouble bytes.Buffer
	if code := runKnown([]string{"simulate", "-q", "gaffer:reliable", "--duration", "2s", "-w", path},
		app.Streams{Out: &out, Err: &trouble}); code != 0 {
		t.Fatalf("exit %d: %s", code, trouble.String())
	}
	bad := append(make([]byte, 8), bytes.Repeat([]byte{0x2c}, 64)...)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, bad...), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	code := runKnown([]string{"overview", path}, app.Streams{Out: &out, Err: &trouble})
	for _, want := range []string{"flow 1  gaffer/reliable", "Reading ended early", "damaged"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the overview lacks %q:\n%s%s", want, out.String(), trouble.String())
		}
	}
	if code == 0 || strings.Count(trouble.String(), "damaged") != 1 {
		t.Errorf("exit %d, and the errors are %q", code, trouble.String())
	}
}

package webpage

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// sizeMost bounds what a server sends of the analysis, in bytes. Source: item 1 of the page's
// requirements: under 4 MB compressed.
const sizeMost = 4_000_000

// The analysis is under 4 MB as `make webserver` compresses it.
func TestSize(t *testing.T) {
	long(t)
	c := exec.Command(testenv.Need(t, "node"), filepath.Join(testenv.Module(t), "web", "compress.mjs"),
		filepath.Join(assets(t), "ackscope.wasm"))
	said, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var size struct{ Raw, Gzip, Brotli int }
	if err := json.Unmarshal(said, &size); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("ackscope.wasm: %.2f MB; with gzip %.2f MB, with Brotli %.2f MB", float64(size.Raw)/1e6, float64(size.Gzip)/1e6,
		float64(size.Brotli)/1e6)
	if size.Brotli >= sizeMost || size.Brotli == 0 {
		t.Errorf("%d bytes with Brotli, expected less than %d", size.Brotli, sizeMost)
	}
}

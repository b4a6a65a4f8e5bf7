//go:build unix

package batch

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipe: a pipe is refused. Opening it would wait for a writer.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no pipe can be made: ", err)
	}
	done, err := newAnalyzer(t).Do(context.Background(), &Job{Capture: Capture{Files: []File{{"x", path}}}})
	if err != nil || !strings.Contains(done.Error, "that can be read again") {
		t.Errorf("%+v, %v", done, err)
	}
}

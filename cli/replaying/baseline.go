package replaying

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/schema/yamlfile"
)

// readBaseline reads the baseline of a capture; nil where there is none.
func readBaseline(path string) (*replay.Baseline, error) {
	path += replay.BaselineSuffix
	text, err := yamlfile.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no baseline is no trouble
	}
	if err != nil {
		return nil, err
	}
	b, err := replay.ReadBaseline(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// writeBaseline writes a baseline, and leaves alone a file that is the same already.
func writeBaseline(a *app.App, capture string, b *replay.Baseline) error {
	path := capture + replay.BaselineSuffix
	var text bytes.Buffer
	if _, err := b.WriteTo(&text); err != nil {
		return err
	}
	if was, err := yamlfile.ReadFile(path); err == nil && bytes.Equal(was, text.Bytes()) {
		return nil
	}
	return a.SaveFile("--update", path, outfile.Text, nil, func(w io.Writer) error {
		_, err := text.WriteTo(w)
		return err
	})
}

// identityOf returns what tells a capture file from others: size and SHA-256.
func identityOf(path string) (id replay.Identity, err error) {
	f, err := os.Open(path)
	if err != nil {
		return id, err
	}
	defer f.Close()
	sum := sha256.New()
	if id.Bytes, err = io.Copy(sum, f); err != nil {
		return id, err
	}
	id.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return id, nil
}

// renamed returns the capture that an orphaned baseline was written for, among those without a
// baseline; empty where there is none.
func renamed(orphan string, bare []string) string {
	text, err := yamlfile.ReadFile(orphan)
	if err != nil {
		return ""
	}
	b, err := replay.ReadBaseline(bytes.NewReader(text))
	if err != nil || b.Capture.SHA256 == "" {
		return ""
	}
	for _, path := range bare {
		if info, err := os.Stat(path); err != nil || info.Size() != b.Capture.Bytes {
			continue
		}
		if id, err := identityOf(path); err == nil && id == b.Capture {
			return path
		}
	}
	return ""
}

package web

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// program is the file of the page that is not committed, and so may be missing.
const program = "ackscope.wasm"

// Open returns the files of the page: those of the folder that --assets names, or those in the
// program if it names none. The error says how to build them.
func Open(folder string) (fs.FS, error) {
	files := Assets()
	if folder != "" {
		files = os.DirFS(filepath.Clean(folder))
	}
	if files == nil {
		return nil, errors.New("this program was built without the page: run `make web` in the source of ackscope, and " +
			"then give `--assets web/dist`")
	}
	if _, err := fs.Stat(files, program); err != nil {
		return nil, fmt.Errorf("--assets %s: expected the folder that `make web` writes: %w", folder, err)
	}
	return files, nil
}

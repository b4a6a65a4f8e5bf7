package cli

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
)

// rotation is a row of files of which each is ended when it is full, as tshark's
// and dumpcap's -b make it: name_00001_20261121130500.pcapng, …
type rotation struct {
	path     string
	size     int64         // bytes; 0 for no limit
	duration time.Duration // 0 for no limit
	packets  uint64        // 0 for no limit
	files    int           // how many are kept; 0 for all

	number  int
	kept    []outfile.Made
	written uint64 // frames in the current file
	began   machine.Instant
}

// parseRotation reads the values of -b; nil where there is none.
func parseRotation(path string, conditions []string) (*rotation, error) {
	if len(conditions) == 0 {
		return nil, nil
	}
	if path == "" || path == "-" {
		return nil, errors.New("-b: expected -w FILE too, the name that the files are called by")
	}
	r := &rotation{path: path}
	for _, text := range conditions {
		kind, value, ok := strings.Cut(text, ":")
		var err error
		switch {
		case !ok:
			err = errors.New("no colon")
		case kind == "filesize":
			r.size, err = parseSize(value)
		case kind == "duration":
			var seconds float64
			if seconds, err = strconv.ParseFloat(value, 64); err == nil && (seconds <= 0 || seconds > 1e9) {
				err = errors.New("out of range")
			}
			r.duration = time.Duration(seconds * float64(time.Second))
		case kind == "packets":
			r.packets, err = strconv.ParseUint(value, 10, 63)
		case kind == "files":
			r.files, err = strconv.Atoi(value)
			if err == nil && r.files < 1 {
				err = errors.New("out of range")
			}
		default:
			err = errors.New("unknown condition")
		}
		if err != nil {
			return nil, fmt.Errorf("-b %q: expected filesize:100MB, duration:SECONDS, packets:N or files:N", text)
		}
	}
	if r.size == 0 && r.duration == 0 && r.packets == 0 {
		return nil, errors.New("-b files: expected a condition that ends a file too: filesize, duration or packets")
	}
	return r, nil
}

// parseSize reads a size with its unit, or a bare number of kB as tshark has it.
func parseSize(text string) (int64, error) {
	number := strings.TrimRight(text, "kKMGiB")
	factor, ok := map[string]float64{"": 1e3, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "B": 1}[text[len(number):]]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(v > 0) || v*factor > math.MaxInt64/2 {
		return 0, fmt.Errorf("expected a size as 100MB, found %q", text)
	}
	return max(1, int64(v*factor)), nil
}

// next names the file to begin.
func (r *rotation) next(now time.Time) string {
	r.number++
	r.written = 0
	extension := filepath.Ext(r.path)
	return fmt.Sprintf("%s_%05d_%s%s", strings.TrimSuffix(r.path, extension), r.number, now.Format("20060102150405"), extension)
}

// full reports whether the current file is to end before a frame of that time.
func (r *rotation) full(bytes int64, at machine.Instant) bool {
	return r.written > 0 && (r.size > 0 && bytes >= r.size ||
		r.packets > 0 && r.written >= r.packets ||
		r.duration > 0 && at.Sub(r.began) >= r.duration)
}

// note counts a frame that was written.
func (r *rotation) note(at machine.Instant) {
	if r.written == 0 {
		r.began = at
	}
	r.written++
}

// prune deletes the oldest files beyond those that are kept. A file that somebody
// else has put in the place of one of them stays.
func (r *rotation) prune() error {
	for r.files > 0 && len(r.kept) > r.files {
		if err := r.kept[0].Remove(); err != nil {
			return fmt.Errorf("-b files:%d: %w", r.files, err)
		}
		r.kept = r.kept[1:]
	}
	return nil
}

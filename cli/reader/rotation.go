package reader

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
)

// Rotation writes a row of files, each up to a limit, like -b of tshark and
// dumpcap: name_00001_20261121130500.pcapng, …
type Rotation struct {
	Path     string
	size     int64         // bytes; 0 for no limit
	duration time.Duration // 0 for no limit
	packets  uint64        // 0 for no limit
	files    int           // number of files to keep; 0 for all

	number  int
	kept    []outfile.Made
	written uint64 // frames in the current file
	began   machine.Instant
}

// ParseRotation parses the values of -b. It returns nil if there are none.
func ParseRotation(path string, conditions []string) (*Rotation, error) {
	if len(conditions) == 0 {
		return nil, nil
	}
	if path == "" || path == "-" {
		return nil, errors.New("-b: expected -w FILE too, the name that the files are called by")
	}
	r := &Rotation{Path: path}
	for _, text := range conditions {
		kind, value, ok := strings.Cut(text, ":")
		var err error
		switch {
		case !ok:
			err = errors.New("no colon")
		case kind == "filesize":
			r.size, err = app.ParseSize(value)
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

// Next returns the name of the next file.
func (r *Rotation) Next(now time.Time) string {
	r.number++
	r.written = 0
	extension := filepath.Ext(r.Path)
	return fmt.Sprintf("%s_%05d_%s%s", strings.TrimSuffix(r.Path, extension), r.number,
		now.Format("20060102150405"), extension)
}

// full reports whether the current file ends before a frame of that time.
func (r *Rotation) full(bytes int64, at machine.Instant) bool {
	return r.written > 0 && (r.size > 0 && bytes >= r.size ||
		r.packets > 0 && r.written >= r.packets ||
		r.duration > 0 && at.Sub(r.began) >= r.duration)
}

// note counts a written frame.
func (r *Rotation) note(at machine.Instant) {
	if r.written == 0 {
		r.began = at
	}
	r.written++
}

// prune deletes the oldest files beyond the number to keep. It does not delete
// a file that has replaced one of them.
func (r *Rotation) prune() error {
	for r.files > 0 && len(r.kept) > r.files {
		if err := r.kept[0].Remove(); err != nil {
			return fmt.Errorf("-b files:%d: %w", r.files, err)
		}
		r.kept = r.kept[1:]
	}
	return nil
}

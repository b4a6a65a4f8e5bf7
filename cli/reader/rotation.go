package reader

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/ring"
)

// Rotation is a row of files that a Save writes, as -b asks for it.
type Rotation struct {
	ring.Row
	shelf ring.Shelf
}

// ParseRotation parses the values of -b. It returns nil if there are none.
func ParseRotation(path string, conditions []string) (*Rotation, error) {
	if len(conditions) == 0 {
		return nil, nil
	}
	if path == "" || path == "-" {
		return nil, errors.New("-b: expected -w FILE too, the name that the files are called by")
	}
	r := &Rotation{Row: ring.Row{Path: path}}
	for _, text := range conditions {
		kind, value, ok := strings.Cut(text, ":")
		var err error
		switch {
		case !ok:
			err = errors.New("no colon")
		case kind == "filesize":
			r.Bytes, err = app.ParseSize(value)
		case kind == "duration":
			var seconds float64
			if seconds, err = strconv.ParseFloat(value, 64); err == nil && (seconds <= 0 || seconds > 1e9) {
				err = errors.New("out of range")
			}
			r.Duration = time.Duration(seconds * float64(time.Second))
		case kind == "packets":
			r.Packets, err = strconv.ParseUint(value, 10, 63)
		case kind == "files":
			r.shelf.Files, err = strconv.Atoi(value)
			if err == nil && r.shelf.Files < 1 {
				err = errors.New("out of range")
			}
		default:
			err = errors.New("unknown condition")
		}
		if err != nil {
			return nil, fmt.Errorf("-b %q: expected filesize:100MB, duration:SECONDS, packets:N or files:N", text)
		}
	}
	if r.Bytes == 0 && r.Duration == 0 && r.Packets == 0 {
		return nil, errors.New("-b files: expected a condition that ends a file too: filesize, duration or packets")
	}
	return r, nil
}

// prune deletes the oldest files beyond the number to keep.
func (r *Rotation) prune() error {
	for {
		old := r.shelf.Excess()
		if old == nil {
			return nil
		}
		if err := old.Remove(); err != nil {
			return fmt.Errorf("-b files:%d: %w", r.shelf.Files, err)
		}
	}
}

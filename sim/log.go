package sim

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"sync"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
)

// Line is one line of a log: an event and its details.
type Line map[string]any

// Log writes what the endpoints of a run did, as JSON Lines in the format of
// the truth files that accompany recorded captures. Each endpoint's lines are
// in order of time. Several goroutines may use a Log. A nil Log writes nothing.
type Log struct {
	epoch    machine.Instant
	mu       sync.Mutex
	buffered *bufio.Writer
	lines    *json.Encoder
	err      error
}

// NewLog returns a log that writes to w. epoch is the start of the run, in
// nanoseconds since the Unix epoch.
func NewLog(w io.Writer, epoch machine.Instant) *Log {
	buffered := bufio.NewWriterSize(w, 64<<10)
	return &Log{epoch: epoch, buffered: buffered, lines: json.NewEncoder(printable.JSONWriter(buffered))}
}

// Tell writes a line of an endpoint. It adds the endpoint's name and the time,
// in seconds since the Unix epoch.
func (l *Log) Tell(at machine.Instant, endpoint string, line Line) {
	if l == nil {
		return
	}
	line["t"], line["endpoint"] = math.Round(float64(l.epoch+at)/1e3)/1e6, endpoint
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = l.lines.Encode(line)
	}
}

// Flush passes all lines to the writer. It returns the first error of the log.
func (l *Log) Flush() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = l.buffered.Flush()
	}
	return l.err
}

package lab

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"sync"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
)

// Line is one line of a log: an event and what there is to say of it.
type Line map[string]any

// Log writes what the parts of a run did, as JSON Lines in the terms of the
// truth files that stand beside recorded captures. Each part's lines are in
// order of time. A nil Log takes everything and writes nothing.
type Log struct {
	clock    Clock
	mu       sync.Mutex
	buffered *bufio.Writer
	lines    *json.Encoder
	err      error
}

// NewLog gives a log on w.
func NewLog(w io.Writer, clock Clock) *Log {
	buffered := bufio.NewWriterSize(w, 64<<10)
	return &Log{clock: clock, buffered: buffered, lines: json.NewEncoder(printable.JSONWriter(buffered))}
}

// Tell writes a line of a part of the run. It adds the time, in seconds since
// the Unix epoch, and the part's name.
func (l *Log) Tell(at machine.Instant, endpoint string, line Line) {
	if l == nil {
		return
	}
	line["t"], line["endpoint"] = math.Round(float64(l.clock.Wall(at))/1e3)/1e6, endpoint
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = l.lines.Encode(line)
	}
}

// Flush hands all lines to the writer and gives the first trouble that there was.
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

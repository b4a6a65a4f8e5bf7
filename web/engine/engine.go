// Package engine is what the page in the browser asks: the commands of the program, and a capture
// that is held open.
//
//	e := engine.New(registry)
//	code := e.Run([]string{"overview", "--json", "match.pcapng"}, &out, &complaints)
//	code = e.Open([]string{"match.pcapng"}, &complaints)
//	err := e.Rows(&out, 4700, 50)    // as `packets --json` prints them
//	err = e.State(&out, 1, 4710)     // as `state --json` prints it
//
// The page shows what these print. So its figures are those of the command line. Nothing here
// knows of a browser: the tests run it natively.
package engine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/cli"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/state"
	"github.com/ackscope/ackscope/machine"
)

// Engine answers a page. It belongs to one goroutine.
type Engine struct {
	registry protocol.Registry
	out      switched
	flush    func() error
	args     []string
	browser  *state.Browser // nil until Open
	passed   []int          // entries that passed the filter; nil without a filter
}

// New returns an engine for the protocols of a registry.
func New(r protocol.Registry) *Engine { return &Engine{registry: r} }

// Beside is another engine that reads the same capture at the same time. Each engine runs in a process
// of its own.
type Beside struct {
	// Verdicts has what Verdicts of the other engine writes. It ends early where that engine has
	// failed. It is nil for Verdicts itself.
	Verdicts io.Reader
	// Trade gives what this engine learned in the first run, and returns what the other one did. No
	// bytes are nothing. It is nil where each engine makes the whole run.
	Trade func(own []byte) (other []byte)
}

// Run runs a command line, and returns its exit code.
func (e *Engine) Run(args []string, out, complaints io.Writer) int {
	return cli.Run(e.registry, args, app.Streams{In: strings.NewReader(""), Out: out, Err: complaints})
}

// Overview runs a command line of the overview while another engine replays the same capture.
func (e *Engine) Overview(other *Beside, args []string, out, complaints io.Writer) int {
	return cli.Run(e.registry, args, app.Streams{
		In: strings.NewReader(""), Out: out, Err: complaints, Verdicts: other.Verdicts, Trade: other.Trade,
	})
}

// Verdicts replays a capture for the overview that another engine makes of it. args are flags and
// the capture. It returns an exit code.
func (e *Engine) Verdicts(other *Beside, args []string, out, complaints io.Writer) int {
	return cli.Verdicts(e.registry, args, app.Streams{
		In: strings.NewReader(""), Out: out, Err: complaints, Trade: other.Trade,
	})
}

// Open reads a capture, and holds it open in place of the last one. args are flags and the
// capture. The result is an exit code: not 0 if there is nothing to show.
func (e *Engine) Open(args []string, complaints io.Writer) int {
	e.Close()
	s := app.Streams{In: strings.NewReader(""), Out: &e.out, Err: complaints}
	var code int
	e.args = args
	e.browser, e.flush, code = cli.Browse(e.registry, args, s)
	return code
}

// Close lets go of the capture. It does nothing if none is open.
func (e *Engine) Close() {
	if e.browser != nil {
		_ = e.browser.Close() // it was only read
	}
	e.browser, e.passed = nil, nil
}

// Len returns the number of rows: of packets that pass the filter, or of all.
func (e *Engine) Len() int {
	switch {
	case e.browser == nil:
		return 0
	case e.passed != nil:
		return len(e.passed)
	}
	return e.browser.Len()
}

// errClosed says that no capture is open.
var errClosed = errors.New("no capture is open")

// Filter chooses the packets that Rows counts: those that match a display filter, of one flow if
// flow is not 0. It returns an exit code, and complaints has the error of a wrong filter.
func (e *Engine) Filter(text string, flow int, complaints io.Writer) int {
	if e.browser == nil {
		fmt.Fprintln(complaints, errClosed)
		return app.ExitFailed
	}
	if flow != 0 {
		if strings.TrimSpace(text) != "" {
			text = " && (" + text + ")"
		}
		text = fmt.Sprintf("flow == %d%s", flow, text)
	}
	if strings.TrimSpace(text) == "" {
		e.passed = nil
		return app.ExitDone
	}
	numbers := &frames{find: e.browser.Find, entries: []int{}}
	code := e.Run(slices.Concat([]string{"packets", "-q", "-T", "fields", "-e", "frame.number", "-Y", text}, e.args),
		numbers, complaints)
	if code == app.ExitDone {
		slices.Sort(numbers.entries)
		e.passed = slices.Compact(numbers.entries)
	}
	return code
}

// Rows writes rows from the first-th as lines of JSON. Each has the entry, the fate of its packet
// and the objects that `packets --json` prints for it.
func (e *Engine) Rows(to io.Writer, first, count int) error {
	return e.write(to, func() error {
		var list []int
		for row := max(first, 0); row < min(first+count, e.Len()); row++ {
			if e.passed != nil {
				list = append(list, e.passed[row])
			} else {
				list = append(list, row)
			}
		}
		return e.browser.Rows(list, false)
	})
}

// Packet writes the row of one entry, with its decode tree, its layers and its bytes.
func (e *Engine) Packet(to io.Writer, entry int) error {
	return e.write(to, func() error { return e.browser.Rows([]int{entry}, true) })
}

// State writes both sides of a flow as they were after an entry. Flow 0 is the entry's own.
func (e *Engine) State(to io.Writer, flow, entry int) error {
	return e.write(to, func() error {
		if entry < 0 || entry >= e.browser.Len() {
			return fmt.Errorf("entry %d: expected one of %d", entry, e.browser.Len())
		}
		if flow == 0 {
			flow = e.browser.Flow(entry)
		}
		return e.browser.State(flow, entry)
	})
}

// Beside returns the entry of a flow before an entry, or after it if way is 1. It returns -1 if
// there is none.
func (e *Engine) Beside(flow, entry, way int) int {
	if e.browser == nil || way != 1 && way != -1 {
		return -1
	}
	if n, ok := e.browser.Beside(flow, entry, way); ok {
		return n
	}
	return -1
}

// Around writes the rows of a flow around an entry: up to count before it, and as many after it.
func (e *Engine) Around(to io.Writer, flow, entry, count int) error {
	return e.write(to, func() error {
		var list []int
		for n, left := entry, count; left > 0; left-- {
			before, ok := e.browser.Beside(flow, n, -1)
			if !ok {
				break
			}
			list, n = append(list, before), before
		}
		slices.Reverse(list)
		if entry >= 0 && entry < e.browser.Len() && e.browser.Flow(entry) == flow {
			list = append(list, entry)
		}
		for n, left := entry, count; left > 0; left-- {
			after, ok := e.browser.Beside(flow, n, 1)
			if !ok {
				break
			}
			list, n = append(list, after), after
		}
		return e.browser.Rows(list, false)
	})
}

// Row returns the row of a frame, or of the next one that passes the filter. It returns false if
// the capture has no such frame.
func (e *Engine) Row(frame int) (int, bool) {
	if e.browser == nil || frame < 1 {
		return 0, false
	}
	entry, ok := e.browser.Find(uint64(frame))
	if !ok || e.passed == nil {
		return entry, ok
	}
	row, _ := slices.BinarySearch(e.passed, entry)
	return row, row < len(e.passed)
}

// At returns the first entry at or after a moment: nanoseconds after the first frame.
func (e *Engine) At(since int64) int {
	if e.browser == nil || e.browser.Len() == 0 {
		return 0
	}
	return e.browser.Entry(e.browser.Time(0) + machine.Instant(since))
}

// write passes on what a method of the browser writes.
func (e *Engine) write(to io.Writer, from func() error) error {
	if e.browser == nil {
		return errClosed
	}
	e.out.to = to
	defer func() { e.out.to = nil }()
	err := from()
	return errors.Join(err, e.flush())
}

// switched is a writer whose destination changes.
type switched struct{ to io.Writer }

// Write implements io.Writer.
func (s *switched) Write(p []byte) (int, error) {
	if s.to == nil {
		return len(p), nil
	}
	return s.to.Write(p)
}

// frames collects the entries of the frame numbers that are written to it, one on a line.
type frames struct {
	find    func(uint64) (int, bool)
	entries []int
	rest    []byte
}

// Write implements io.Writer.
func (f *frames) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	lines := bufio.NewScanner(bytes.NewReader(f.rest[:bytes.LastIndexByte(f.rest, '\n')+1]))
	for lines.Scan() {
		if n, err := strconv.ParseUint(lines.Text(), 10, 64); err == nil {
			if entry, ok := f.find(n); ok {
				f.entries = append(f.entries, entry)
			}
		}
	}
	f.rest = append(f.rest[:0], f.rest[bytes.LastIndexByte(f.rest, '\n')+1:]...)
	return len(p), nil
}

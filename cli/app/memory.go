package app

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/show"
)

const (
	// liveMemory is the default of --memory for a live capture. It is small,
	// since such a capture may run for months beside other programs.
	liveMemory = 512 << 20
	// leastMemory is the least value of --memory. It has room for the program, 16
	// MiB of IP fragments, and what a file format can ask for.
	leastMemory = 64 << 20
	// unknownMemory is assumed if the machine does not say how much memory it
	// has.
	unknownMemory = 4 << 30
	// JudgeCost is the additional cost of a flow's judges, or of its autopsy.
	JudgeCost = 56 << 10
)

// budget is the memory limit of a command, and what it discarded to stay below
// it.
type budget struct {
	Text  string // --memory
	Bytes int64
	mu    sync.Mutex // guards let: several captures may be read at a time
	let   [4]uint64  // discarded flows, by analyze.Reason
	// Gone is the command's own handler of discarded flows.
	Gone func(*analyze.Flow, analyze.Reason)
}

// ReadMemory parses --memory and sets the collector's limit. The caller calls
// restore at the end.
func (a *App) ReadMemory() (restore func(), err error) {
	b := &a.Memory
	if b.Bytes, err = memoryOf(b.Text, halfOfMachine); err != nil {
		return func() {}, err
	}
	if b.Text == "" && os.Getenv("GOMEMLIMIT") != "" {
		return func() {}, nil // the user's own setting
	}
	was := debug.SetMemoryLimit(b.Bytes)
	return func() { debug.SetMemoryLimit(was) }, nil
}

// memoryOf parses a size, or returns the default for an empty text.
func memoryOf(text string, usual func() int64) (int64, error) {
	if text == "" {
		return max(usual(), leastMemory), nil
	}
	n, err := ParseSize(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--memory: %w", err)
	case n < leastMemory:
		return 0, fmt.Errorf("--memory %s: expected 64 MiB at least", text)
	}
	return n, nil
}

// halfOfMachine returns half of the machine's memory, or half of the control
// group's limit if that is lower.
func halfOfMachine() int64 {
	n := machineMemory()
	if n <= 0 {
		n = unknownMemory
	}
	return n / 2
}

// name formats the limit for messages.
func (b *budget) name() string {
	if b.Text != "" {
		return "--memory " + b.Text
	}
	return show.Bytes(8*uint64(b.Bytes)) + ", half of the memory that there is"
}

// Share returns the part-th part of the limit, in bytes.
func (a *App) Share(part int64) int {
	if a.Memory.Bytes == 0 {
		return int(unknownMemory / 2 / part)
	}
	return int(a.Memory.Bytes / part)
}

// Limits returns the limits of the analysis of a file. own is the command's own
// cost of a flow, in bytes.
func (a *App) Limits(own int) analyze.Limits {
	return analyze.FileLimits(int64(a.Share(1)), own)
}

// LiveLimits returns the limits of an analysis of traffic that may never end.
// memory is the limit of the whole program, in bytes.
func (a *App) LiveLimits() (l analyze.Limits, memory int64, err error) {
	return LiveLimits(a.Memory.Text)
}

// LiveLimits returns what App.LiveLimits does. The text is the value of --memory, or "".
func LiveLimits(text string) (l analyze.Limits, memory int64, err error) {
	if memory, err = memoryOf(text, func() int64 { return liveMemory }); err != nil {
		return l, 0, err
	}
	l = analyze.LiveLimits
	l.Bytes, l.Flows = int(memory/2), min(l.Flows, int(memory/analyze.FlowCost))
	return l, memory, nil
}

// LetGo counts a discarded flow.
func (a *App) LetGo(f *analyze.Flow, why analyze.Reason) {
	a.Memory.mu.Lock()
	a.Memory.let[why]++
	a.Memory.mu.Unlock()
	if a.Memory.Gone != nil {
		a.Memory.Gone(f, why)
	}
}

// WarnLetGo warns if flows were discarded for lack of memory.
func (a *App) WarnLetGo() {
	var all uint64
	var parts []string
	for _, why := range []analyze.Reason{analyze.ReasonFlows, analyze.ReasonBytes} {
		if n := a.Memory.let[why]; n > 0 {
			all += n
			parts = append(parts, show.Grouped(n)+map[analyze.Reason]string{
				analyze.ReasonFlows: " since there were too many",
				analyze.ReasonBytes: " since their state was too large",
			}[why])
		}
	}
	if all == 0 || a.Flags.Quiet {
		return
	}
	a.Warn(fmt.Sprintf("%s ended early to keep within %s, %s: what comes of one later counts as another flow; --memory "+
		"gives more room",
		show.Plural(all, "flow"), a.Memory.name(), strings.Join(parts, ", ")))
}

// RoomError says that a table, none of which can be discarded, has outgrown its
// room.
type RoomError struct {
	What string // the table
	Room int    // in bytes
}

func (e *RoomError) Error() string {
	return fmt.Sprintf("%s take more than %s: give more room by --memory, or read a part of the capture", e.What,
		show.Bytes(8*uint64(e.Room)))
}

// ParseSize parses a size with its unit. A bare number is in kB, as in tshark.
func ParseSize(text string) (int64, error) {
	number := strings.TrimRight(text, "kKMGiB")
	factor, ok := map[string]float64{
		"": 1e3, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20,
		"GiB": 1 << 30, "B": 1,
	}[text[len(number):]]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(v > 0) || v*factor > math.MaxInt64/2 {
		return 0, fmt.Errorf("expected a size as 100MB, found %q", text)
	}
	return max(1, int64(v*factor)), nil
}

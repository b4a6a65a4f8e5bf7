package cli

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/show"
)

const (
	// liveMemory is --memory where the command captures live: a capture that runs
	// for months shares its machine with others.
	liveMemory = 512 << 20
	// leastMemory is the least that --memory takes: the program itself, 16 MiB for IP
	// fragments and what a file format can ask for fit in it.
	leastMemory = 64 << 20
	// unknownMemory is what a machine is taken to have that does not say.
	unknownMemory = 4 << 30
	// flowCost is what a flow of one packet can cost, with what a command keeps of it.
	flowCost = 8 << 10
	// judgeCost is what the judges of a flow, or its remains, can cost beside.
	judgeCost = 56 << 10
)

// budget is what the command keeps within, and what it let go to do so.
type budget struct {
	text  string // --memory
	bytes int64
	mu    sync.Mutex // of let: several captures can be read at a time
	let   [4]uint64  // flows that were let go, by analyze.Reason
	// gone is the command's own: it is told of each flow that is let go.
	gone func(*analyze.Flow, analyze.Reason)
}

// readMemory reads --memory, and sets the collector's limit by it. The caller
// calls restore at the end.
func (a *app) readMemory() (restore func(), err error) {
	b := &a.memory
	if b.bytes, err = memoryOf(b.text, halfOfMachine); err != nil {
		return func() {}, err
	}
	if b.text == "" && os.Getenv("GOMEMLIMIT") != "" {
		return func() {}, nil // the user's own word
	}
	was := debug.SetMemoryLimit(b.bytes)
	return func() { debug.SetMemoryLimit(was) }, nil
}

// memoryOf reads a size, or takes the usual one where there is none.
func memoryOf(text string, usual func() int64) (int64, error) {
	if text == "" {
		return max(usual(), leastMemory), nil
	}
	n, err := parseSize(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--memory: %w", err)
	case n < leastMemory:
		return 0, fmt.Errorf("--memory %s: expected 64 MiB at least", text)
	}
	return n, nil
}

// halfOfMachine gives half of the memory that the machine has, or that the control
// group leaves to the program.
func halfOfMachine() int64 {
	n := machineMemory()
	if n <= 0 {
		n = unknownMemory
	}
	return n / 2
}

// name words what the command keeps within.
func (b *budget) name() string {
	if b.text != "" {
		return "--memory " + b.text
	}
	return show.Bytes(8*uint64(b.bytes)) + ", half of the memory that there is"
}

// share gives one part in so many of what the command keeps within, in bytes.
func (a *app) share(part int64) int {
	if a.memory.bytes == 0 {
		return int(unknownMemory / 2 / part)
	}
	return int(a.memory.bytes / part)
}

// limits gives what bounds the analysis of a file. Each flow beside its state
// costs so many bytes of the command's own.
func (a *app) limits(own int) analyze.Limits {
	return analyze.Limits{Flows: a.share(int64(flowCost + own)), Bytes: a.share(2), Room: true}
}

// liveLimits gives what bounds the analysis of traffic that may have no end, and
// the whole program, in bytes.
func (a *app) liveLimits() (l analyze.Limits, memory int64, err error) {
	if memory, err = memoryOf(a.memory.text, func() int64 { return liveMemory }); err != nil {
		return l, 0, err
	}
	l = analyze.LiveLimits
	l.Bytes, l.Flows = int(memory/2), min(l.Flows, int(memory/flowCost))
	return l, memory, nil
}

// letGo notes that a flow was let go.
func (a *app) letGo(f *analyze.Flow, why analyze.Reason) {
	a.memory.mu.Lock()
	a.memory.let[why]++
	a.memory.mu.Unlock()
	if a.memory.gone != nil {
		a.memory.gone(f, why)
	}
}

// tellLetGo warns where flows were let go for want of memory.
func (a *app) tellLetGo() {
	var all uint64
	var parts []string
	for _, why := range []analyze.Reason{analyze.ReasonFlows, analyze.ReasonBytes} {
		if n := a.memory.let[why]; n > 0 {
			all += n
			parts = append(parts, show.Grouped(n)+map[analyze.Reason]string{analyze.ReasonFlows: " since there were too many", analyze.ReasonBytes: " since their state was too large"}[why])
		}
	}
	if all == 0 || a.flags.quiet {
		return
	}
	a.warn(fmt.Sprintf("%s ended early to keep within %s, %s: what comes of one later counts as another flow; --memory gives more room",
		show.Plural(all, "flow"), a.memory.name(), strings.Join(parts, ", ")))
}

// roomError is a table that can let nothing go and has grown beyond its room.
type roomError struct {
	what string
	room int
}

func (e *roomError) Error() string {
	return fmt.Sprintf("%s take more than %s: give more room by --memory, or read a part of the capture", e.what, show.Bytes(8*uint64(e.room)))
}

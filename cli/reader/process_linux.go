package reader

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/ackscope/ackscope/metrics"
)

// process returns the memory and processor time of this process.
func process() (p metrics.Process) {
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseUint(fields[1], 10, 64) // 0 means unknown
			p.Resident = pages * uint64(os.Getpagesize())
		}
	}
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) == nil {
		p.CPUSeconds = float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
	}
	p.Started = float64(started.UnixNano()) / 1e9
	return p
}

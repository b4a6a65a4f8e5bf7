package app

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machineMemory returns the bytes of memory that this program can have: those of the
// machine, or fewer where a control group says so. 0 where neither tells.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	most := int64(0)
	if unix.Sysinfo(&info) == nil {
		most = int64(min(uint64(info.Totalram)*uint64(info.Unit), 1<<62)) //nolint:unconvert // 32 bits wide on 386 and arm
	}
	return lowest(most, groupMemory("/sys/fs/cgroup", "/proc/self/cgroup"))
}

// groupMemory returns the lowest limit of the control groups that a process is in:
// of version 2 in memory.max, of version 1 in memory.limit_in_bytes. 0 for none.
func groupMemory(root, groups string) (most int64) {
	most = lowest(limitIn(filepath.Join(root, "memory.max")),
		limitIn(filepath.Join(root, "memory", "memory.limit_in_bytes")))
	data, err := os.ReadFile(groups)
	if err != nil {
		return most
	}
	for line := range strings.Lines(string(data)) {
		// "0::/user.slice", or "7:memory:/docker/4711".
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		base, file := root, "memory.max"
		if controllers != "" {
			base, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		}
		if !ok || controllers != "" && !strings.Contains(","+controllers+",", ",memory,") {
			continue
		}
		// A group is bound by those above it, too.
		for path = filepath.Join("/", path); path != "/"; path = filepath.Dir(path) {
			most = lowest(most, limitIn(filepath.Join(base, path, file)))
		}
	}
	return most
}

// limitIn reads a limit; 0 for none.
func limitIn(path string) int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil || n <= 0 {
		return 0 // "max"
	}
	return n
}

// lowest returns the lower of two limits, of which 0 is none.
func lowest(x, y int64) int64 {
	if x == 0 || y > 0 && y < x {
		return y
	}
	return x
}

package app

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machineMemory returns the memory that this program can use, in bytes: the
// machine's, or the control group's limit if that is lower. It returns 0 if
// neither is known.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	most := int64(0)
	if unix.Sysinfo(&info) == nil {
		most = int64(min(uint64(info.Totalram)*uint64(info.Unit), 1<<62)) //nolint:unconvert // 32 bits wide on 386 and arm
	}
	return lowest(most, groupMemory("/sys/fs/cgroup", "/proc/self/cgroup"))
}

// groupMemory returns the lowest limit of a process's control groups:
// memory.max in version 2, memory.limit_in_bytes in version 1. It returns 0 if
// there is none.
func groupMemory(root, groups string) (most int64) {
	most = lowest(limitIn(filepath.Join(root, "memory.max")),
		limitIn(filepath.Join(root, "memory", "memory.limit_in_bytes")))
	data, err := os.ReadFile(groups)
	if err != nil {
		return most
	}
	for line := range strings.Lines(string(data)) {
		// a line is "0::/user.slice" or "7:memory:/docker/4711"
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		base, file := root, "memory.max"
		if controllers != "" {
			base, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		}
		if !ok || controllers != "" && !strings.Contains(","+controllers+",", ",memory,") {
			continue
		}
		// The limits of the groups above apply too.
		for path = filepath.Join("/", path); path != "/"; path = filepath.Dir(path) {
			most = lowest(most, limitIn(filepath.Join(base, path, file)))
		}
	}
	return most
}

// limitIn reads a limit from a file. It returns 0 for no limit.
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

// lowest returns the lower of two limits, where 0 means no limit.
func lowest(x, y int64) int64 {
	if x == 0 || y > 0 && y < x {
		return y
	}
	return x
}

package app

import (
	"path/filepath"
	"testing"
)

// TestGroupMemory reads limits of control groups of both versions.
func TestGroupMemory(t *testing.T) {
	for _, c := range []struct {
		name   string
		groups string
		files  map[string]string // relative to /sys/fs/cgroup
		want   int64
	}{
		{"none", "0::/\n", nil, 0},
		{"version 2, no limit", "0::/a\n", map[string]string{"a/memory.max": "max\n"}, 0},
		{"version 2", "0::/a/b\n", map[string]string{"a/b/memory.max": "1048576\n", "a/memory.max": "max\n"}, 1 << 20},
		{
			"version 2, the group above is smaller", "0::/a/b\n",
			map[string]string{"a/b/memory.max": "1048576\n", "a/memory.max": "4096\n"},
			4096,
		},
		{"version 2, seen from within", "0::/\n", map[string]string{"memory.max": "65536\n"}, 65536},
		{
			"version 1", "7:cpu:/x\n4:hugetlb,memory:/docker/1\n",
			map[string]string{"memory/docker/1/memory.limit_in_bytes": "8192\n", "memory/x/memory.limit_in_bytes": "1\n"},
			8192,
		},
		{
			"version 1, seen from within", "4:memory:/docker/1\n",
			map[string]string{"memory/memory.limit_in_bytes": "16384\n"},
			16384,
		},
		{"nonsense", "0::/a\nx\n::\n", map[string]string{"a/memory.max": "-3\n"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range c.files {
				writeLimit(t, text, root, name)
			}
			groups := filepath.Join(t.TempDir(), "cgroup")
			writeLimit(t, c.groups, groups)
			if got := groupMemory(root, groups); got != c.want {
				t.Errorf("%d bytes, expected %d", got, c.want)
			}
		})
	}
}

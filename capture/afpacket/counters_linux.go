package afpacket

import (
	"bytes"
	"os"
	"strconv"
)

// counters are the interface's own counts since it came up.
type counters struct {
	received, dropped uint64
}

// readCounters reads an interface's line of /proc/net/dev, in the network
// namespace of the calling thread: received bytes, packets, errors, dropped, …
func readCounters(name string) (c counters, ok bool) {
	text, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return c, false
	}
	for line := range bytes.Lines(text) {
		before, after, found := bytes.Cut(line, []byte(":"))
		if !found || string(bytes.TrimSpace(before)) != name {
			continue
		}
		fields := bytes.Fields(after)
		if len(fields) < 4 {
			return c, false
		}
		var errs [2]error
		c.received, errs[0] = strconv.ParseUint(string(fields[1]), 10, 64)
		c.dropped, errs[1] = strconv.ParseUint(string(fields[3]), 10, 64)
		return c, errs[0] == nil && errs[1] == nil
	}
	return c, false
}

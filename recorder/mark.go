package recorder

import (
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// markWords begin the comment that says where the trouble of a recording is.
const markWords = "ackscope recorder: frame "

// Mark returns a comment for a capture file. It names the frame of the trouble and the time of that frame:
// "ackscope recorder: frame 31 at 2026-11-23T13:05:00.5Z: loss-burst".
func Mark(frame uint64, at machine.Instant, text string) string {
	return markWords + strconv.FormatUint(frame, 10) + " at " + at.Time().Format(time.RFC3339Nano) + ": " + text
}

// Marked returns what a comment of Mark says. The time tells whether the file is still the one that was marked, since
// other programs copy comments of files to files with other frames.
func Marked(comment string) (frame uint64, at machine.Instant, ok bool) {
	rest, ok := strings.CutPrefix(comment, markWords)
	number, rest, ok2 := strings.Cut(rest, " at ")
	stamp, _, ok3 := strings.Cut(rest, "Z: ")
	if !ok || !ok2 || !ok3 {
		return 0, 0, false
	}
	frame, err := strconv.ParseUint(number, 10, 39)
	t, err2 := time.Parse(time.RFC3339Nano, stamp+"Z")
	return frame, machine.Instant(t.UnixNano()), err == nil && err2 == nil && frame > 0
}

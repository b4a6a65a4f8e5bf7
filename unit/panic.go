package unit

import (
	"path"
	"regexp"
	"strings"
)

// Parts of a stack that differ from run to run.
var (
	callArguments = regexp.MustCompile(`\([^()]*(\{[^}]*\})?[^()]*\)$`)
	codeOffset    = regexp.MustCompile(` \+0x[0-9a-f]+$`)
	creator       = regexp.MustCompile(` in goroutine \d+$`)
)

// describePanic returns the message of a panic, and its stack. Without numbers of goroutines,
// addresses and the folders of the build, the stack is the same in each run. The message of a panic on another
// goroutine ends with the stack of that one: see package analyze.
func describePanic(message string, own []byte) (text, stack string) {
	text, of, other := strings.Cut(message, "\n\ngoroutine ")
	if !other {
		of = string(own)
	}
	var b strings.Builder
	for line := range strings.Lines(of) {
		line = strings.TrimRight(line, "\n")
		if place, ok := strings.CutPrefix(line, "\t"); ok {
			place = codeOffset.ReplaceAllString(place, "")
			line = "\t" + path.Join(path.Base(path.Dir(place)), path.Base(place))
		} else if strings.HasSuffix(line, ":") || strings.HasPrefix(line, "runtime/debug.Stack") {
			continue // "goroutine 17 [running]:"
		} else {
			line = callArguments.ReplaceAllString(creator.ReplaceAllString(line, ""), "(...)")
		}
		b.WriteString(line + "\n")
	}
	return text, b.String()
}

package arch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const gopacket = "github.com/google/gopacket"

// TestWhoLinksGopacket: a program that imports the codec, the machines or the
// descriptor of a protocol does not link gopacket, on no path of imports. The
// analysis does not either: it keeps the decoder of capture. Packages that
// take a packet apart for people do: dissect/stack and those that show its layers.
// The packages dissect/<p>/layers do for users of gopacket. Every package of
// these folders is looked at, so that a new protocol is held too.
func TestWhoLinksGopacket(t *testing.T) {
	const format = `{{.ImportPath}} {{join .Deps " "}}`
	out, err := exec.Command("go", "list", "-f", format, module+"/wire/...", module+"/machine/...",
		module+"/dissect/...", module+"/capture", module+"/analyze", module+"/filter/...", module+"/replay/...",
		module+"/show", module+"/export", module+"/tui", module+"/cmd/ackscope").Output()
	if err != nil {
		t.Fatal(err)
	}
	linking := []string{"dissect/stack", "show", "export", "tui", "cmd/ackscope"}
	found := 0
	for line := range strings.Lines(string(out)) {
		path, needs, _ := strings.Cut(strings.TrimSpace(line), " ")
		links := strings.Contains(" "+needs, " "+gopacket)
		own := strings.TrimPrefix(path, module+"/")
		layers := strings.HasPrefix(own, "dissect/") && strings.HasSuffix(own, "/layers")
		switch {
		case layers || slices.Contains(linking, own):
			found++
			if !links {
				t.Errorf("%s does not link gopacket, which takes packets apart", own)
			}
		case links:
			t.Errorf("%s links gopacket: only dissect/<p>/layers, and what shows packets, may", own)
		}
	}
	if want := 3 + len(linking); found != want {
		t.Errorf("found %d packages that link gopacket, expected %d", found, want)
	}
}

package arch

import (
	"os/exec"
	"strings"
	"testing"
)

const gopacket = "github.com/google/gopacket"

// TestWhoLinksGopacket: a program that imports the codec, the machines or the
// descriptor of a protocol does not link gopacket. Only a program that imports
// dissect/<p>/layers does. The test lists the dependencies of every package in
// these folders, so that it covers new protocols and packages.
func TestWhoLinksGopacket(t *testing.T) {
	const format = `{{.ImportPath}} {{join .Deps " "}}`
	out, err := exec.Command("go", "list", "-f", format, module+"/wire/...", module+"/machine/...",
		module+"/dissect/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	layers := 0
	for line := range strings.Lines(string(out)) {
		path, needs, _ := strings.Cut(strings.TrimSpace(line), " ")
		links := strings.Contains(" "+needs, " "+gopacket)
		switch own := strings.TrimPrefix(path, module+"/"); {
		case strings.HasPrefix(own, "dissect/") && strings.HasSuffix(own, "/layers"):
			layers++
			if !links {
				t.Errorf("%s does not link gopacket: what is it for?", own)
			}
		case links:
			t.Errorf("%s links gopacket: only dissect/<p>/layers may", own)
		}
	}
	if layers != 3 {
		t.Errorf("found %d packages dissect/<p>/layers, expected one for each of 3 protocols", layers)
	}
}

package rebinding

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// Clients on real sockets are joined, whose relay gives them another port towards the server.
// Servers do not follow: that of gaffer takes the new port for another client, and that of
// Riptide ignores it. That of SRDP answers every address.
func TestLive(t *testing.T) {
	testenv.Long(t, "real sockets take seconds")
	for _, protocol := range []string{"gaffer:reliable", "gaffer:article", "riptide", "srdp"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "lab.pcapng")
			out, err := exec.Command(testenv.Ackscope(t), "lab", protocol, "--rebind", "3s", "--duration", "5s", "--recorder",
				"relay", "-w", path).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			list := load(t, path)
			server := list[0].dst // of the relay's second packet on
			for i := range list {
				if d := &list[i]; d.src.Addr() == list[0].dst.Addr() && d.dst.Addr() != list[0].src.Addr() {
					server = d.dst
					break
				}
			}
			joined := 0
			for _, f := range analysed(t, plain, list).Flows() {
				w := f.Was
				if w == nil {
					continue
				}
				if f.B != server || w.Certainty == machine.Certain || w.Side != machine.A {
					t.Errorf("flow %d is joined as %+v", f.ID, w)
				}
				t.Logf("joined: %v", w.Certainty)
				joined++
			}
			if joined != 1 {
				t.Errorf("%d flows are joined, expected 1", joined)
			}
		})
	}
}

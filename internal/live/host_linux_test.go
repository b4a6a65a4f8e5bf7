package live

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

// TestOwnerBeforePrivileges: the capture goes on as another user, and still knows which process of root holds the
// socket, since it looked before. With --no-host the file holds nothing of the host.
func TestOwnerBeforePrivileges(t *testing.T) {
	if !namespaced(t) {
		return
	}
	server, err := net.ListenPacket("udp4", "127.0.0.1:7777")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flag string
		want bool
	}{{"-p", true}, {"--no-host", false}} {
		path := filepath.Join(testenv.UserDir(t), "owner.pcapng")
		x := begin(t, nil, "capture", "-Z", testenv.AsUser, "-i", "lo", "-w", path, c.flag, "-c", "40")
		client, err := net.Dial("udp4", "127.0.0.1:7777")
		if err != nil {
			t.Fatal(err)
		}
		for range 60 { // -c ends the capture at 40
			if _, err := client.Write([]byte("a datagram of no known protocol")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if err := x.wait(t); err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
		out, err := exec.Command(program(t), "flows", "--json", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		owner := `"owner_name_b":"` + strings.TrimSpace(string(name)) + `"`
		if strings.Contains(string(out), owner) != c.want || strings.Contains(string(out), "owner_") != c.want {
			t.Errorf("%s: %s\nexpected %s: %v", c.flag, out, owner, c.want)
		}
	}
}

package threads

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/rehost"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/traffic"
)

// subject is a capture of one or more files.
type subject struct {
	name  string
	paths []string
}

// simulations are captures whose clients get a host each.
var simulations = []struct{ name, flags string }{
	{"srdp-8", "srdp --clients 8 --services any --duration 4s"},
	{"srdp-64", "srdp --clients 64 --duration 1s"},
	{"riptide-6", "riptide --clients 6 --no-limits --duration 20s"},
	{"reliable-5", "gaffer:article-connect --clients 5 --stay 3s --duration 12s"},
	{"slices", "gaffer:article-slices --duration 10s"},
	{"window-shift", "riptide --clients 3 --fault window-shift --duration 10s"},
}

// made makes captures with many hosts. The flows of some concern each other. There are a counter of one endpoint,
// relayed messages, ICMP errors, and a client that moves.
func made(t *testing.T) (list []subject) {
	t.Helper()
	dir := t.TempDir()
	for _, x := range simulations {
		path := filepath.Join(dir, x.name+".pcapng")
		rehost.Simulated(t, path, strings.Fields(x.flags)...)
		list = append(list, subject{x.name, []string{path}})
	}
	pcaps := filepath.Join(testenv.Module(t), "testdata", "pcaps")
	lobby := filepath.Join(pcaps, "u221_lobby.server.pcap.gz")
	list = append(list, subject{"lobby", []string{rehosted(t, lobby, rehost.Spread(lobbyPort))}})

	some := synthetic(t, traffic.Options{Packets: 10_000, Flows: 24, Loss: 0.05, Seed: 1})
	many := synthetic(t, traffic.Options{Packets: 12_000, Flows: 1_200, Loss: 0.05, Seed: 2})
	crowd := synthetic(t, traffic.Options{Packets: 100_000, Flows: 20_000, Loss: 0.05, Seed: 3}) // not all are held whole
	refused := filepath.Join(testenv.Module(t), "testdata", "kernel", "refused.pcapng.gz")
	moved := rehosted(t, some, func(packet int, end netip.AddrPort) netip.AddrPort {
		if packet < 5_000 || end.Addr() != netip.AddrFrom4([4]byte{10, 0, 0, 5}) {
			return end
		}
		return netip.AddrPortFrom(end.Addr(), end.Port()+1)
	})
	cut := filepath.Join(dir, "cut.pcap")
	if whole, err := os.ReadFile(some); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(cut, whole[:len(whole)*2/3+5], 0o600); err != nil {
		t.Fatal(err)
	}
	return append(list, subject{"gaffer-24", []string{some}}, subject{"gaffer-1200", []string{many}},
		subject{"gaffer-20000", []string{crowd}},
		subject{"gaffer-and-icmp", []string{some, refused}}, subject{"moved", []string{moved}},
		subject{"cut", []string{cut}})
}

// lobbyPort is that of the server in the recorded lobby.
const lobbyPort = 7826

func synthetic(t *testing.T, o traffic.Options) (path string) {
	t.Helper()
	return file(t, "synthetic.pcap", func(f *os.File) error { return traffic.Write(f, o) })
}

func rehosted(t *testing.T, from string, place rehost.Place) (path string) {
	t.Helper()
	return file(t, "rehosted.pcapng", func(f *os.File) error {
		_, err := rehost.Copy(f, from, place)
		return err
	})
}

// file writes a file into a folder of its own.
func file(t *testing.T, name string, write func(*os.File) error) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

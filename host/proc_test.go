package host

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// The files of a host, as Linux 6.18 writes them on a little-endian machine.
var files = map[string]string{
	"sys/kernel/random/boot_id": "4d7b0c9e-5a0e-4c5e-9d0c-0d7f1f1c2a3b\n",
	"net/udp": `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  101: 0101090A:9C40 00000000:0000 07 00000000:00034000 00:00000000 00000000  1000        0 31337 2 0000000000000000 491
  102: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 5 2 0000000000000000 7
  103: 0101090A:9C41 0202090A:C350 01 00000000:00000300 00:00000000 00000000  1001        0 31338 2 0000000000000000 0
`,
	"net/udp6": `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  201: 00000000000000000000000000000000:9C42 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 31339 2 0000000000000000 3
`,
	"net/snmp": `Ip: Forwarding DefaultTTL
Ip: 1 64
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 35 2 500 36 491 0 9 0 0
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
UdpLite: 1 1 1 1 1 1 1 1 1
`,
	"net/snmp6":        "Udp6InDatagrams                 \t0\nUdp6NoPorts                     \t4\nUdp6RcvbufErrors \t3\n",
	"net/softnet_stat": "000100d5 00000002 00000000\n00013bf3 00000010 00000000\n",
	"net/dev": `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1 2 0 0 0 0 0 0 1 2 0 0 0 0 0 0
  eth0: 1 2 3 4 5 0 0 0 1 2 0 6 7 0 0 0
`,
}

// folder writes the files of a host, and processes that hold sockets.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// process adds a process that holds a socket.
func process(t *testing.T, dir, pid, name, group, inode string) {
	t.Helper()
	fd := filepath.Join(dir, pid, "fd")
	if err := os.MkdirAll(fd, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"comm": name + "\n", "cgroup": group} {
		if err := os.WriteFile(filepath.Join(dir, pid, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("socket:["+inode+"]", filepath.Join(fd, "3")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", filepath.Join(fd, "0")); err != nil {
		t.Fatal(err)
	}
}

var (
	server    = netip.MustParseAddrPort("10.9.1.1:40000")
	second    = netip.MustParseAddrPort("10.9.1.1:40001")
	third     = netip.MustParseAddrPort("10.9.1.1:40002")
	client    = netip.MustParseAddrPort("10.9.2.2:50000")
	addresses = []netip.Addr{server.Addr()}
)

// taken is what a sampler reads of the files above.
func taken(t *testing.T, at machine.Instant) *Sample {
	t.Helper()
	dir := folder(t, files)
	process(t, dir, "812", "game", "4:memory:/other\n0::/kubepods/pod7\n", "31337")
	s, ok := NewSampler(dir).Take(at, addresses, []uint16{40000, 40001, 40002, 40003})
	if !ok {
		t.Fatal("no sample")
	}
	return s
}

func TestTake(t *testing.T) {
	s := taken(t, 1e9)
	const why = "no process that is visible here holds the socket"
	unspecified := netip.MustParseAddrPort("0.0.0.0:0")
	want := []Socket{
		{server, unspecified, 31337, 1000, 0x34000, 491, Owner{812, "game", "/kubepods/pod7", ""}},
		{second, client, 31338, 1001, 0x300, 0, Owner{Why: why}},
		{netip.MustParseAddrPort("[::]:40002"), netip.MustParseAddrPort("[::]:0"), 31339, 0, 0, 3, Owner{Why: why}},
	}
	if !reflect.DeepEqual(s.Sockets, want) {
		t.Errorf("sockets\n%+v, expected\n%+v", s.Sockets, want)
	}
	counts := Counts{NoPorts: 6, ReceiveErrors: 500, BufferErrors: 494, ChecksumErrors: 9, Softnet: 18}
	if s.Counts != counts {
		t.Errorf("counts %+v, expected %+v", s.Counts, counts)
	}
	devices := []Device{{Name: "lo"}, {"eth0", 4, 6, 5, 7, 3}}
	if !reflect.DeepEqual(s.Devices, devices) {
		t.Errorf("devices %+v, expected %+v", s.Devices, devices)
	}
	text := "host: 10.9.1.1:40000 game (pid 812): 491 dropped, 212992 bytes unread; 10.9.1.1:40001 of user 1001: " +
		"0 dropped, 768 bytes unread; [::]:40002 of user 0: 3 dropped, 0 bytes unread; eth0: 9 dropped in, 13 out"
	if s.Text() != text {
		t.Errorf("text %q, expected %q", s.Text(), text)
	}
}

func TestTakeNothing(t *testing.T) {
	if _, ok := NewSampler(t.TempDir()).Take(1, addresses, []uint16{40000}); ok {
		t.Error("a folder without files gave a sample")
	}
}

// TestManySockets: what does not fit is cut, and said to be.
func TestManySockets(t *testing.T) {
	_, line, _ := strings.Cut(files["net/udp"], "\n")
	line, _, _ = strings.Cut(line, "\n")
	many := map[string]string{"net/udp": "head\n" + strings.Repeat(line+"\n", maxSockets+1)}
	s, ok := NewSampler(folder(t, many)).Take(1, addresses, []uint16{40000})
	if !ok || !s.Cut || len(s.Sockets) != maxSockets {
		t.Fatalf("%d sockets, cut %v, %v", len(s.Sockets), s.Cut, ok)
	}
	if b := s.Append(nil); len(b) > MostEncoded {
		t.Errorf("%d bytes: expected at most %d", len(b), MostEncoded)
	}
}

func TestOwnersPassedOn(t *testing.T) {
	dir := folder(t, files)
	process(t, dir, "812", "a\tgame\n", "0::/pod\n", "31337")
	before := NewOwners(dir)
	before.Survey()
	after := NewOwners(t.TempDir())
	after.Adopt(before.Text() + "nonsense\n1\tx\ty\tz\n")
	want := map[uint64]Owner{31337: {812, "agame", "/pod", ""}}
	if !reflect.DeepEqual(after.known, want) {
		t.Errorf("%+v, expected %+v", after.known, want)
	}
}

func TestRoundTrip(t *testing.T) {
	s := taken(t, 1e9)
	s.Cut = true
	got, err := Parse(s.Append([]byte("x"))[1:])
	if err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%v\n%+v, expected\n%+v", err, got, s)
	}
	b := s.Append(nil)
	for n := range b {
		if _, err := Parse(b[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes were read as a whole sample", n, len(b))
		}
	}
}

func FuzzParse(f *testing.F) {
	s := Sample{
		At: 5, Addresses: addresses, Ports: []uint16{1}, Sockets: []Socket{{Local: server, Remote: client}},
		Devices: []Device{{Name: "lo"}},
	}
	f.Add(s.Append(nil))
	f.Add([]byte(magic + "\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := Parse(b)
		if err != nil {
			return
		}
		again := x.Append(nil)
		y, err := Parse(again)
		if len(again) > MostEncoded || err != nil || !x.Cut && !y.Cut && !reflect.DeepEqual(x, y) {
			t.Fatalf("%d bytes, %v\n%+v\n%+v", len(again), err, x, y)
		}
		var line Timeline
		line.Add(x)
		line.Endpoint(server, client, 0, 10)
		_ = x.Text()
	})
}

func FuzzTake(f *testing.F) {
	for _, text := range files {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		hostile := map[string]string{}
		for name := range files {
			hostile[name] = text
		}
		if s, ok := NewSampler(folder(t, hostile)).Take(1, addresses, []uint16{40000, 40002}); ok {
			if _, err := Parse(s.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

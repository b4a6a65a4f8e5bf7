package fleet_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
)

// TestLiveSensor captures on an interface, started as root. The sensor goes on as another user without any privilege.
// Its findings name the drops at a socket of the host, and its flows whose socket it is.
func TestLiveSensor(t *testing.T) {
	if !testnet.NamespacedRoot(t) {
		return
	}
	f := newFleet(t, 1, []string{"eu"})
	own := testenv.UserDir(t)
	key := filepath.Join(own, "site-eu.key") // the sensor reads it as that user
	seed, err := os.ReadFile(f.key("eu"))
	if err == nil {
		err = os.WriteFile(key, seed, 0o600)
	}
	if err == nil {
		err = os.Chown(key, testenv.UserID, testenv.GroupID)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := func(more ...string) []string {
		return append([]string{
			"sensor", "--site", "eu", "--name", "host-1", "-i", "lo", "-f", "udp", "--hub", f.url(), "--key", key, "--spool",
			filepath.Join(own, "spool"), "--ring", filepath.Join(own, "ring"), "--ring-size", "64MiB",
		}, more...)
	}
	refused := start(t, "program", args()...) // root does not go on as root by itself
	if err := refused.wait(time.Minute); err == nil || !strings.Contains(refused.said(), "--keep-root") {
		t.Errorf("root without -Z: %v, %s", err, refused.said())
	}
	collector := f.collector()
	server := overflowing(t) // before the sensor: only root sees whose socket it is
	s := start(t, "program", args("-Z", testenv.AsUser, "-d", fmt.Sprintf("udp.port==%d,gaffer", server.Port))...)
	s.says("epoch", time.Minute)
	withoutPrivileges(t, s.cmd.Process.Pid)
	client, err := net.DialUDP("udp4", nil, server)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range 300 { // three seconds, so that samples lie before and after
		// The article's header: sequence, ack and ack bits.
		packet := binary.LittleEndian.AppendUint16(make([]byte, 0, 1000), uint16(i))
		packet = append(packet, 0xff, 0xff, 0, 0, 0, 0)
		if _, err := client.Write(packet[:cap(packet)]); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	type finding struct {
		Rule    string `parquet:"rule"`
		Message string `parquet:"message"`
	}
	type flow struct {
		Owner string `parquet:"owner_name_b"`
		Drops uint64 `parquet:"socket_drops_b"`
	}
	var findings []finding
	until(t, time.Minute, func() bool {
		findings = readFiles[finding](t, f.file("tables"), "findings")
		return len(readFiles[flow](t, f.file("tables"), "flows")) > 0 && len(findings) > 0
	})
	dropped := ""
	for _, x := range findings {
		if x.Rule == "socket-dropped" {
			dropped = x.Message
		}
	}
	if !strings.Contains(dropped, "dropped at the socket") {
		t.Errorf("the findings are %+v", findings)
	}
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	flows := readFiles[flow](t, f.file("tables"), "flows")
	if flows[0].Owner != strings.TrimSpace(string(name)) || flows[0].Drops < 100 {
		t.Errorf("the flows are %+v, expected the owner %s", flows, name)
	}
	if err := collector.stop(); err != nil {
		t.Error(err)
	}
	kept, err := filepath.Glob(filepath.Join(own, "ring", "*.pcapng"))
	if err != nil || len(kept) == 0 {
		t.Fatal(kept, err)
	}
	if b, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(b), "ASH") {
		t.Errorf("%s has no sample of the host: %v", kept[0], err)
	}
}

// overflowing opens a socket whose buffer holds a datagram or two, and never reads it.
func overflowing(t *testing.T) *net.UDPAddr {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err == nil {
		t.Cleanup(func() { _ = socket.Close() })
		err = socket.SetReadBuffer(1)
	}
	if err != nil {
		t.Fatal(err)
	}
	return socket.LocalAddr().(*net.UDPAddr)
}

// withoutPrivileges checks what the kernel tells of each thread of a process.
func withoutPrivileges(t *testing.T, pid int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads %v, %v", threads, err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		said := map[string]string{}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			said[name] = strings.TrimSpace(value)
		}
		none := strings.Repeat("0", 16)
		for name, want := range map[string]string{
			"Uid": fmt.Sprint(testenv.UserID), "Gid": fmt.Sprint(testenv.GroupID), "Groups": fmt.Sprint(testenv.GroupID),
			"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none, "NoNewPrivs": "1",
		} {
			for _, got := range strings.Fields(said[name]) {
				if got != want {
					t.Errorf("%s: %s is %q, expected %s", path, name, said[name], want)
				}
			}
		}
	}
}

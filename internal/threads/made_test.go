package threads

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/rehost"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/traffic"
	"github.com/ackscope/ackscope/machine"
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
	whole, err := os.ReadFile(some)
	if err != nil {
		t.Fatal(err)
	}
	cut, twice := filepath.Join(dir, "cut.pcap"), filepath.Join(dir, "twice.pcap")
	begun := records(whole, 1900) // so many frames lie between a datagram and its copy
	for path, b := range map[string][]byte{
		cut: whole[:len(whole)*2/3+5], twice: slices.Concat(whole[:begun], whole[pcapHeader:begun]),
	} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return append(list, subject{"fragments", []string{file(t, "fragments.pcapng", fragments)}},
		subject{"gaffer-24", []string{some}}, subject{"gaffer-1200", []string{many}},
		subject{"gaffer-20000", []string{crowd}},
		subject{"gaffer-and-icmp", []string{some, refused}}, subject{"moved", []string{moved}},
		subject{"cut", []string{cut}}, subject{"twice", []string{twice}})
}

// pcapHeader and recordHeader are the bytes of headers in a classic pcap file.
const pcapHeader, recordHeader = 24, 16

// records returns where the first records of a classic pcap file end.
func records(b []byte, count int) (end int) {
	end = pcapHeader
	for range count {
		end += recordHeader + int(binary.LittleEndian.Uint32(b[end+8:]))
	}
	return end
}

// fragments writes datagrams in two fragments each. Between the two, other hosts send so many first
// fragments that one decoder has no room for all.
func fragments(to *os.File) error {
	w, err := capture.NewWriter(to, capture.WriterOptions{})
	if err != nil {
		return err
	}
	id, err := w.AddInterface(capture.Interface{LinkType: capture.LinkRaw})
	if err != nil {
		return err
	}
	at := machine.Instant(time.Hour)
	write := func(host, number int, second bool) {
		e := capture.Envelope{
			Src: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(host >> 8), byte(host)}), 4000),
			Dst: netip.MustParseAddrPort("10.0.0.1:5000"), ID: uint16(number),
		}
		packet, err2 := capture.AppendUDP(nil, e, make([]byte, 1000))
		const header, half = 20, 512
		more, offset, part := byte(0x20), 0, packet[header:header+half]
		if second {
			more, offset, part = 0, half, packet[header+half:]
		}
		data := slices.Concat(packet[:header], part)
		binary.BigEndian.PutUint16(data[2:], uint16(len(data)))
		binary.BigEndian.PutUint16(data[6:], uint16(offset/8))
		data[6] |= more
		at += machine.Instant(time.Millisecond)
		err = errors.Join(err, err2, w.WriteFrame(&capture.Frame{
			At: at, Interface: id, LinkType: capture.LinkRaw, Length: len(data), Data: data,
		}))
	}
	for round := range 4 {
		for host := range 20 {
			write(host, round, false)
		}
		for other := range 1500 {
			write(256+other, round, false)
		}
		for host := range 20 {
			write(host, round, true)
		}
	}
	return errors.Join(err, w.Close())
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

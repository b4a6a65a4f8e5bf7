package lab

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// listen opens a socket that a test uses by hand.
func listen(t *testing.T) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func addrOf(conn *net.UDPConn) netip.AddrPort {
	return plain(conn.LocalAddr().(*net.UDPAddr).AddrPort())
}

// serve runs a relay until the test ends.
func serve(t *testing.T, o RelayOptions) *Relay {
	t.Helper()
	o.Clock, o.Listen = StartClock(), loopback
	r, err := NewRelay(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- r.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	return r
}

// read returns the numbers that arrive within a time.
func read(t *testing.T, conn *net.UDPConn, within time.Duration, most int) (numbers []uint32, from netip.AddrPort) {
	t.Helper()
	buffer := make([]byte, 2048)
	conn.SetReadDeadline(time.Now().Add(within))
	for len(numbers) < most {
		n, at, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return numbers, from
		}
		from = plain(at)
		if n >= 4 {
			numbers = append(numbers, binary.BigEndian.Uint32(buffer))
		}
	}
	return numbers, from
}

// One description of a path serves the simulation and the relay. With one seed,
// the relay loses and duplicates the same datagrams as the simulation's path.
func TestRelayDoesAsTheSimulation(t *testing.T) {
	path := sim.Path{
		Loss: 0.2, Duplicate: 0.2, Bursts: sim.Gilbert{ToBad: 0.05, ToGood: 0.3},
		Jitter: 3 * time.Millisecond,
	}
	const count = 400
	var want []uint32
	same := sim.Impair(path, 11, "client", "server")
	for i := range uint32(count) {
		fate := same.Datagram(machine.Instant(i), 4)
		if !fate.Lost {
			want = append(want, i)
		}
		if fate.Twice {
			want = append(want, i)
		}
	}
	server, client := listen(t), listen(t)
	r := serve(t, RelayOptions{Settings: Settings{Seed: 11}, Target: addrOf(server), ToServer: path})
	go func() {
		for i := range uint32(count) {
			client.WriteToUDPAddrPort(binary.BigEndian.AppendUint32(nil, i), r.Addr())
			time.Sleep(time.Millisecond / 4)
		}
	}()
	got, _ := read(t, server, 5*time.Second, len(want))
	more, _ := read(t, server, 50*time.Millisecond, 1)
	got = append(got, more...)
	if slices.IsSorted(got) {
		t.Error("3 ms of jitter reordered nothing")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d datagrams came, expected the %d that the simulation's path lets through", len(got), len(want))
	}
}

// Answers find their client. The relay ignores senders that are not the server,
// and clients that it may not answer.
func TestRelayCarriesForThoseItKnows(t *testing.T) {
	server, one, two, stranger := listen(t), listen(t), listen(t), listen(t)
	r := serve(t, RelayOptions{Target: addrOf(server)})
	number := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	one.WriteToUDPAddrPort(number(1), r.Addr())
	_, towardOne := read(t, server, 5*time.Second, 1)
	two.WriteToUDPAddrPort(number(2), r.Addr())
	_, towardTwo := read(t, server, 5*time.Second, 1)
	if towardOne == towardTwo {
		t.Fatalf("both clients come from %v: expected an address each", towardOne)
	}
	// A stranger writes to the relay's address for client one, but is not the
	// server.
	stranger.WriteToUDPAddrPort(number(666), towardOne)
	server.WriteToUDPAddrPort(number(10), towardOne)
	server.WriteToUDPAddrPort(number(20), towardTwo)
	if got, _ := read(t, one, 5*time.Second, 1); !slices.Equal(got, []uint32{10}) {
		t.Errorf("client one got %v, expected 10", got)
	}
	if got, _ := read(t, two, 5*time.Second, 1); !slices.Equal(got, []uint32{20}) {
		t.Errorf("client two got %v, expected 20", got)
	}
	if got, _ := read(t, one, 30*time.Millisecond, 1); len(got) > 0 {
		t.Errorf("client one got %v besides", got)
	}
	closed := serve(t,
		RelayOptions{Target: addrOf(server), Settings: Settings{Allow: func(netip.Addr) bool { return false }}})
	one.WriteToUDPAddrPort(number(3), closed.Addr())
	if got, _ := read(t, server, 30*time.Millisecond, 1); len(got) > 0 {
		t.Errorf("the server got %v from a client that is not allowed", got)
	}
}

func TestRelayDelays(t *testing.T) {
	server, client := listen(t), listen(t)
	r := serve(t, RelayOptions{Target: addrOf(server), ToServer: sim.Path{Delay: 60 * time.Millisecond}})
	begun := time.Now()
	client.WriteToUDPAddrPort([]byte{0, 0, 0, 1}, r.Addr())
	if got, _ := read(t, server, 5*time.Second, 1); len(got) != 1 {
		t.Fatal("nothing came")
	}
	if took := time.Since(begun); took < 60*time.Millisecond || took > time.Second {
		t.Errorf("it took %v, expected 60ms and not much more", took)
	}
}

// Streams arrive complete and in order, although they are cut and delayed.
func TestRelayStream(t *testing.T) {
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	path := sim.Path{
		Delay: 5 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.1, Segment: 700,
		Resend: 5 * time.Millisecond,
	}
	var seen atomic.Int64
	r := serve(t, RelayOptions{
		Transport: TCP, Target: plain(listener.Addr().(*net.TCPAddr).AddrPort()), ToServer: path, ToHere: path,
		Tap: func(s Observation) {
			if s.To == plain(listener.Addr().(*net.TCPAddr).AddrPort()) {
				seen.Add(int64(len(s.Bytes)))
			}
		},
	})
	sent := make([]byte, 100_000)
	for i := range sent {
		sent[i] = byte(i * 7 >> 3)
	}
	client, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		client.Write(sent)
		client.(*net.TCPConn).CloseWrite()
	}()
	server.SetReadDeadline(time.Now().Add(10 * time.Second))
	var got []byte
	buffer := make([]byte, 4096)
	for {
		n, err := server.Read(buffer)
		got = append(got, buffer[:n]...)
		if err != nil {
			break
		}
	}
	if !slices.Equal(got, sent) {
		t.Errorf("%d bytes came, expected the %d that were sent", len(got), len(sent))
	}
	if n := seen.Load(); n != int64(len(sent)) {
		t.Errorf("the tap saw %d bytes go to the server, expected %d", n, len(sent))
	}
}

func TestSendable(t *testing.T) {
	for at, fine := range map[string]bool{
		"127.0.0.1:9": true, "[fe80::1]:9": true, "192.0.2.1:9": true,
		"0.0.0.0:9": false, "[::]:9": false, "224.0.0.1:9": false, "255.255.255.255:9": false, "127.0.0.1:0": false,
		"[ff02::1]:9": false,
	} {
		if err := Sendable(netip.MustParseAddrPort(at)); (err == nil) != fine {
			t.Errorf("%s: %v", at, err)
		}
	}
	if Sendable(netip.AddrPort{}) == nil {
		t.Error("no address at all is sent to")
	}
	for at, near := range map[string]bool{
		"127.0.0.1": true, "::1": true, "10.1.2.3": true, "fd00::1": true, "::ffff:192.168.0.1": true, "fe80::1": true,
		"8.8.8.8": false, "2001:db8::1": false,
	} {
		if Nearby(netip.MustParseAddr(at)) != near {
			t.Errorf("%s: nearby %v, expected %v", at, !near, near)
		}
	}
}

// A relay without a proper target is refused before it opens anything.
func TestRelayNeedsATarget(t *testing.T) {
	if _, err := NewRelay(RelayOptions{Listen: loopback, Target: netip.MustParseAddrPort("0.0.0.0:80")}); err == nil {
		t.Error("a relay to 0.0.0.0 was made")
	}
}

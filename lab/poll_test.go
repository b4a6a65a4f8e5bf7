package lab

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestPolledBurst sends a burst to a socket that is read only at the next poll. The burst must wait in the socket's
// buffer. A large buffer holds all of it, and a small one loses its end.
func TestPolledBurst(t *testing.T) {
	const burst = 100
	got := func(buffer int) (n int) {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetReadBuffer(buffer); err != nil {
			t.Fatal(err)
		}
		to, err := net.DialUDP("udp", nil, conn.LocalAddr().(*net.UDPAddr))
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		for i := range burst {
			if _, err := to.Write(append([]byte{byte(i)}, make([]byte, 400)...)); err != nil {
				t.Fatal(err)
			}
		}
		ticks, gone := make(chan time.Time, 2), make(chan struct{})
		ticks <- time.Time{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			pollUDP(conn, ticks, gone, func(_ netip.AddrPort, b []byte) bool {
				if int(b[0]) != n {
					t.Errorf("datagram %d came in place of %d", b[0], n)
				}
				n++
				return true
			})
		}()
		for len(ticks) > 0 {
			time.Sleep(time.Millisecond)
		}
		close(gone)
		<-done
		return n
	}
	if n := got(150_000); n != burst {
		t.Errorf("a buffer of 150,000 bytes: %d datagrams, expected all %d", n, burst)
	}
	if n := got(4096); n == 0 || n > burst/2 {
		t.Errorf("a buffer of 4096 bytes: %d datagrams of %d, expected the first few", n, burst)
	}
}

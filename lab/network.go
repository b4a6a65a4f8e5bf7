package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// Transport is what carries a protocol.
type Transport int

const (
	UDP Transport = iota
	TCP
	Both // streams on one side and datagrams on the other, for a TCP proxy and its clients
)

// ParseTransport parses "udp" or "tcp".
func ParseTransport(word string) (Transport, error) {
	switch word {
	case "udp":
		return UDP, nil
	case "tcp":
		return TCP, nil
	}
	return UDP, fmt.Errorf("transport %q: expected udp or tcp", word)
}

func (t Transport) String() string {
	if t == TCP {
		return "tcp"
	}
	return "udp"
}

// network is a host's sockets with their readers.
type network interface {
	addr() netip.AddrPort
	start()
	send(to *peer, t *machine.Transmission) error
	close()
}

// largest is the size of the largest datagram, in bytes.
const largest = 1 << 16

func (h *Host) open() (network, error) {
	o := &h.options
	local := o.Listen
	if o.Role == sim.Client {
		var err error
		if local, err = sourceFor(o.Connect); err != nil {
			return nil, err
		}
	}
	switch o.Transport {
	case TCP:
		return openTCP(h, local)
	case Both:
		return openBoth(h, local)
	}
	return openUDP(h, local)
}

func openUDP(h *Host, local netip.AddrPort) (*udpSocket, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(local))
	if err != nil {
		return nil, err
	}
	if n := h.options.Buffer; n > 0 {
		if err := errors.Join(conn.SetReadBuffer(n), conn.SetWriteBuffer(n)); err != nil {
			_ = conn.Close() // nothing went through it
			return nil, fmt.Errorf("socket buffers of %d bytes: %w", n, err)
		}
	}
	return &udpSocket{host: h, conn: conn}, nil
}

// bothSockets are the sockets of a host with streams on one side and datagrams
// on the other. Its address is that of its datagrams for a client, whose
// packets contain it. For a proxy it is that of its streams, to which clients
// connect. Both have the same port when the system allows that.
type bothSockets struct {
	udp *udpSocket
	tcp *tcpSocket
}

func openBoth(h *Host, local netip.AddrPort) (network, error) {
	tcp, err := openTCP(h, local)
	if err != nil {
		return nil, err
	}
	b := &bothSockets{tcp: tcp}
	if b.udp, err = openUDP(h, tcp.addr()); err != nil && local.Port() == 0 {
		b.udp, err = openUDP(h, local)
	}
	if err != nil {
		tcp.close()
		return nil, err
	}
	return b, nil
}

func (b *bothSockets) addr() netip.AddrPort {
	if b.tcp.listener != nil {
		return b.tcp.addr()
	}
	return b.udp.addr()
}

func (b *bothSockets) start() {
	b.udp.start()
	b.tcp.start()
}

func (b *bothSockets) send(to *peer, t *machine.Transmission) error {
	if t.Kind == machine.SendDatagram {
		return b.udp.send(to, t)
	}
	return b.tcp.send(to, t)
}

func (b *bothSockets) close() {
	b.udp.close()
	b.tcp.close()
}

// sourceFor returns this machine's address on the way to another one, with any
// port. It sends nothing.
func sourceFor(to netip.AddrPort) (netip.AddrPort, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer conn.Close() //nolint:errcheck // nothing went through it
	own := plain(conn.LocalAddr().(*net.UDPAddr).AddrPort())
	return netip.AddrPortFrom(own.Addr(), 0), nil
}

// udpSocket is the socket of a host that uses UDP.
type udpSocket struct {
	host    *Host
	conn    *net.UDPConn
	readers sync.WaitGroup
}

func (s *udpSocket) addr() netip.AddrPort { return plain(s.conn.LocalAddr().(*net.UDPAddr).AddrPort()) }

func (s *udpSocket) start() {
	give := func(from netip.AddrPort, b []byte) bool {
		return s.host.post(arrival{from: from, kind: arrivedDatagram, bytes: b})
	}
	s.readers.Go(func() {
		if s.host.options.Poll <= 0 {
			readUDP(s.conn, give)
			return
		}
		ticks := time.NewTicker(s.host.options.Poll)
		defer ticks.Stop()
		pollUDP(s.conn, ticks.C, s.host.gone, give)
	})
}

// emptyAfter is how long a polled socket must have nothing to read before it counts as empty.
const emptyAfter = time.Millisecond

// pollUDP empties a socket at each tick, and passes its datagrams to give. It ends when the socket or gone is closed,
// or give returns false.
func pollUDP(conn *net.UDPConn, ticks <-chan time.Time, gone <-chan struct{}, give func(netip.AddrPort, []byte) bool) {
	buffer := make([]byte, largest)
	for {
		select {
		case <-gone:
			return
		case <-ticks:
		}
		for {
			if conn.SetReadDeadline(time.Now().Add(emptyAfter)) != nil {
				return // closed
			}
			n, from, err := conn.ReadFromUDPAddrPort(buffer)
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case errors.Is(err, os.ErrDeadlineExceeded):
			case err != nil:
				continue // an error of one datagram: ICMP reported a closed port
			case !give(plain(from), append([]byte(nil), buffer[:n]...)):
				return
			default:
				continue
			}
			break
		}
	}
}

// readUDP passes every datagram of a socket to give, until the socket is closed
// or give returns false.
func readUDP(conn *net.UDPConn, give func(from netip.AddrPort, b []byte) bool) {
	buffer := make([]byte, largest)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an error of one datagram: ICMP reported a closed port
		}
		if !give(plain(from), append([]byte(nil), buffer[:n]...)) {
			return
		}
	}
}

func (s *udpSocket) send(to *peer, t *machine.Transmission) error {
	if t.Kind != machine.SendDatagram {
		return fmt.Errorf("a stream over UDP: expected --transport tcp")
	}
	_, err := s.conn.WriteToUDPAddrPort(t.Bytes, to.place.addr)
	return err
}

func (s *udpSocket) close() {
	_ = s.conn.Close() // no data is buffered in it
	s.readers.Wait()
}

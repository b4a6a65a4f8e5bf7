package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/ackscope/ackscope/machine"
)

// Transport is what carries a protocol.
type Transport int

const (
	UDP Transport = iota
	TCP
)

// ParseTransport reads "udp" or "tcp".
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

// network is a host's socket and what reads it.
type network interface {
	addr() netip.AddrPort
	start()
	send(to *peer, t *machine.Transmission) error
	close()
}

// largest is the size of the largest datagram.
const largest = 1 << 16

func (h *Host) open() (network, error) {
	o := &h.options
	local := o.Listen
	if o.Role == Client {
		var err error
		if local, err = sourceFor(o.Connect); err != nil {
			return nil, err
		}
	}
	if o.Transport == TCP {
		return openTCP(h, local)
	}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(local))
	if err != nil {
		return nil, err
	}
	return &udpSocket{host: h, conn: conn}, nil
}

// sourceFor gives this machine's address on the way to another, with any port.
// Nothing is sent for that.
func sourceFor(to netip.AddrPort) (netip.AddrPort, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer conn.Close()
	own := plain(conn.LocalAddr().(*net.UDPAddr).AddrPort())
	return netip.AddrPortFrom(own.Addr(), 0), nil
}

// udpSocket is the socket of a host that speaks UDP.
type udpSocket struct {
	host    *Host
	conn    *net.UDPConn
	readers sync.WaitGroup
}

func (s *udpSocket) addr() netip.AddrPort { return plain(s.conn.LocalAddr().(*net.UDPAddr).AddrPort()) }

func (s *udpSocket) start() {
	s.readers.Go(func() {
		readUDP(s.conn, func(from netip.AddrPort, b []byte) bool {
			return s.host.post(arrival{from: from, kind: arrivedDatagram, bytes: b})
		})
	})
}

// readUDP gives every datagram of a socket until it is closed, or give has had
// enough.
func readUDP(conn *net.UDPConn, give func(from netip.AddrPort, b []byte) bool) {
	buffer := make([]byte, largest)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of one datagram: a port that nobody listens at, by word of ICMP
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
	_, err := s.conn.WriteToUDPAddrPort(t.Bytes, to.addr)
	return err
}

func (s *udpSocket) close() {
	_ = s.conn.Close() // nothing is held back in it
	s.readers.Wait()
}

package lab

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

const (
	dialTimeout  = 5 * time.Second
	farewellTime = time.Second
	maxStreams   = 256     // open at a time, of a server or a relay
	maxUnsent    = 1 << 20 // bytes that wait for a slow peer; beyond that the stream is cut off
)

// stream is one TCP connection. One goroutine reads it and another one writes
// it: a peer that does not read delays no other.
type stream struct {
	conn   *net.TCPConn
	peer   netip.AddrPort
	mu     sync.Mutex
	wake   *sync.Cond
	unsent []byte
	ending bool // closed once everything is written
}

func newStream(conn *net.TCPConn, peer netip.AddrPort) *stream {
	s := &stream{conn: conn, peer: peer}
	s.wake = sync.NewCond(&s.mu)
	return s
}

// own returns this end's address.
func (s *stream) own() netip.AddrPort { return plain(s.conn.LocalAddr().(*net.TCPAddr).AddrPort()) }

// write queues bytes. It returns an error when too many bytes wait.
func (s *stream) write(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return nil
	}
	if len(s.unsent)+len(b) > maxUnsent {
		s.ending, s.unsent = true, nil
		s.wake.Signal()
		return errors.New("the peer reads too slowly: the stream is cut off")
	}
	s.unsent = append(s.unsent, b...)
	s.wake.Signal()
	return nil
}

// close ends the stream once the queued bytes are written.
func (s *stream) close() {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.wake.Signal()
}

// run reads and writes until the stream ends. It passes what it reads to give.
func (s *stream) run(give func(b []byte) bool) {
	var writer sync.WaitGroup
	writer.Go(s.drain)
	buffer := make([]byte, 16<<10)
	for {
		n, err := s.conn.Read(buffer)
		if n > 0 && !give(append([]byte(nil), buffer[:n]...)) || err != nil {
			break
		}
	}
	s.close()
	writer.Wait()
	_ = s.conn.Close() // everything was written, or the peer is gone
}

// drain writes the queued bytes. Then it ends its direction, and gives the
// reader some time for the end of the other one. The system resets a connection
// that is closed with unread bytes. That reset could lose what was just
// written.
func (s *stream) drain() {
	defer func() {
		_ = s.conn.CloseWrite() // fails when the connection is gone
		_ = s.conn.SetReadDeadline(time.Now().Add(farewellTime))
	}()
	var b []byte
	for {
		s.mu.Lock()
		for len(s.unsent) == 0 && !s.ending {
			s.wake.Wait()
		}
		b, s.unsent = s.unsent, b[:0]
		s.mu.Unlock()
		if len(b) == 0 {
			return
		}
		_ = s.conn.SetWriteDeadline(time.Now().Add(dialTimeout)) // fails when the connection is gone, as does the write
		if _, err := s.conn.Write(b); err != nil {
			return
		}
	}
}

// tcpSocket is the socket of a host that uses TCP.
type tcpSocket struct {
	host     *Host
	local    netip.AddrPort
	listener *net.TCPListener // of a server or a proxy
	work     sync.WaitGroup
	mu       sync.Mutex
	streams  map[*stream]bool
	closed   bool
}

func openTCP(h *Host, local netip.AddrPort) (*tcpSocket, error) {
	s := &tcpSocket{host: h, local: local, streams: map[*stream]bool{}}
	if h.options.Role == sim.Client {
		return s, nil
	}
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(local))
	if err != nil {
		return nil, err
	}
	s.listener, s.local = listener, plain(listener.Addr().(*net.TCPAddr).AddrPort())
	return s, nil
}

// addr returns where a server listens. A client's streams have other ports.
func (s *tcpSocket) addr() netip.AddrPort { return s.local }

func (s *tcpSocket) start() {
	if s.listener == nil {
		return
	}
	s.work.Go(func() {
		for {
			conn, err := s.listener.AcceptTCP()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				s.work.Go(func() { s.hold(conn, plain(conn.RemoteAddr().(*net.TCPAddr).AddrPort())) })
			}
		}
	})
}

// hold serves one connection until it ends.
func (s *tcpSocket) hold(conn *net.TCPConn, from netip.AddrPort) {
	st := newStream(conn, from)
	s.mu.Lock()
	fits := !s.closed && len(s.streams) < maxStreams
	if fits {
		s.streams[st] = true
	}
	s.mu.Unlock()
	if !fits {
		_ = conn.Close() // too many streams
		return
	}
	post := func(kind arrivalKind, b []byte) bool {
		return s.host.post(arrival{from: from, stream: st, kind: kind, bytes: b})
	}
	if post(arrivedOpen, nil) {
		st.run(func(b []byte) bool { return post(arrivedBytes, b) })
		post(arrivedClose, nil)
	}
	_ = conn.Close() // run has closed it, if it ran
	s.mu.Lock()
	delete(s.streams, st)
	s.mu.Unlock()
}

// dial opens a client's stream. When it fails, it reports the stream as closed.
func (s *tcpSocket) dial(to netip.AddrPort) {
	d := net.Dialer{Timeout: dialTimeout, LocalAddr: net.TCPAddrFromAddrPort(s.local)}
	conn, err := d.Dial("tcp", to.String())
	if err != nil {
		s.host.post(arrival{from: to, kind: arrivedClose})
		return
	}
	s.hold(conn.(*net.TCPConn), to)
}

func (s *tcpSocket) send(to *peer, t *machine.Transmission) error {
	switch t.Kind {
	case machine.OpenStream:
		if s.host.options.Role == sim.Client && to.stream == nil {
			addr := to.place.addr
			s.work.Go(func() { s.dial(addr) })
		}
	case machine.SendBytes:
		if to.stream != nil {
			return to.stream.write(t.Bytes)
		}
	case machine.CloseStream:
		if to.stream != nil {
			to.stream.close()
			to.stream = nil
		}
	default:
		return errors.New("a datagram over TCP: expected --transport udp")
	}
	return nil
}

func (s *tcpSocket) close() {
	if s.listener != nil {
		_ = s.listener.Close() // accept no more connections
	}
	s.mu.Lock()
	s.closed = true
	for st := range s.streams {
		st.close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

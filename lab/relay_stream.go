package lab

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// tcpRelay carries streams: each connection of a client has its own connection
// to the server. What a path loses arrives later, as if TCP had sent it again.
// Everything behind it waits.
type tcpRelay struct {
	relay    *Relay
	listener *net.TCPListener
	work     sync.WaitGroup
	mu       sync.Mutex
	count    int
	open     map[*stream]bool
	closed   bool
}

func newTCPRelay(r *Relay) (*tcpRelay, error) {
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(r.options.Listen))
	return &tcpRelay{relay: r, listener: listener, open: map[*stream]bool{}}, err
}

func (t *tcpRelay) addr() netip.AddrPort { return plain(t.listener.Addr().(*net.TCPAddr).AddrPort()) }

func (t *tcpRelay) run(ctx context.Context) error {
	t.work.Go(func() {
		for {
			conn, err := t.listener.AcceptTCP()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				t.work.Go(func() { t.serve(conn) })
			}
		}
	})
	<-ctx.Done()
	close(t.relay.gone)
	_ = t.listener.Close() // accept no more connections
	t.mu.Lock()
	t.closed = true
	for s := range t.open {
		s.close()
	}
	t.mu.Unlock()
	t.work.Wait()
	return t.relay.options.Log.Flush()
}

// admit adds streams to the open ones. It returns the number of the pair.
func (t *tcpRelay) admit(pair ...*stream) (n int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.open)+len(pair) > 2*maxStreams {
		return 0, false
	}
	for _, s := range pair {
		t.open[s] = true
	}
	t.count++
	return t.count - 1, true
}

// serve carries one client's stream until it ends.
func (t *tcpRelay) serve(conn *net.TCPConn) {
	defer conn.Close() //nolint:errcheck // its stream has closed it, if it ran
	r, client := t.relay, plain(conn.RemoteAddr().(*net.TCPAddr).AddrPort())
	if !r.options.allows(client.Addr()) {
		return
	}
	target := r.options.Target
	d := net.Dialer{Timeout: dialTimeout, LocalAddr: net.TCPAddrFromAddrPort(r.source())}
	other, err := d.Dial("tcp", target.String())
	if err != nil {
		return
	}
	defer other.Close() //nolint:errcheck // as above
	up := other.(*net.TCPConn)
	own := plain(up.LocalAddr().(*net.TCPAddr).AddrPort())
	near, far := newStream(conn, client), newStream(up, target)
	n, ok := t.admit(near, far)
	if !ok {
		return
	}
	paths := r.impair(n, sim.ImpairStream)
	r.tellFlow(r.options.Clock.Now(), n, client, own)
	listen := t.addr()
	for _, leg := range [][2]netip.AddrPort{{client, listen}, {listen, client}, {own, target}, {target, own}} {
		t.see(leg[0], leg[1], machine.OpenStream, nil)
	}
	var both sync.WaitGroup
	both.Go(func() { t.carry(near, far, paths[0], [4]netip.AddrPort{client, listen, own, target}) })
	both.Go(func() { t.carry(far, near, paths[1], [4]netip.AddrPort{target, own, listen, client}) })
	both.Wait()
	t.mu.Lock()
	delete(t.open, near)
	delete(t.open, far)
	t.mu.Unlock()
}

// delayed is bytes of a stream, and when they arrive.
type delayed struct {
	at    machine.Instant
	bytes []byte
}

// carry carries one direction. What it reads from one stream it writes to the
// other, with delay. The four addresses of the two connections are in by, in
// the order of the path.
func (t *tcpRelay) carry(from, to *stream, path *sim.Impairment, by [4]netip.AddrPort) {
	r := t.relay
	late := make(chan delayed, relayInbox)
	var sender sync.WaitGroup
	sender.Go(func() {
		for d := range late {
			if !t.wait(d.at) {
				break
			}
			if len(d.bytes) == 0 {
				continue // the end of the stream
			}
			t.see(by[2], by[3], machine.SendBytes, d.bytes)
			if to.write(d.bytes) != nil {
				break
			}
		}
		t.see(by[2], by[3], machine.CloseStream, nil)
		to.close()
		for range late { //nolint:revive // what follows the end is dropped
		}
	})
	from.run(func(b []byte) bool {
		now := r.options.Clock.Now()
		t.see(by[0], by[1], machine.SendBytes, b)
		for len(b) > 0 {
			n := min(path.Segment(), len(b))
			at, arrived := path.Carry(now, func(sim.Fate) {})
			if !arrived {
				return false
			}
			late <- delayed{at, b[:n]}
			b = b[n:]
		}
		return true
	})
	t.see(by[0], by[1], machine.CloseStream, nil)
	if at, arrived := path.Carry(r.options.Clock.Now(), func(sim.Fate) {}); arrived {
		late <- delayed{at: at}
	}
	close(late)
	sender.Wait()
}

func (t *tcpRelay) see(from, to netip.AddrPort, kind machine.TransmitKind, b []byte) {
	if r := t.relay; r.options.Tap != nil {
		r.options.Tap(Observation{At: r.options.Clock.Now(), Transport: TCP, From: from, To: to, Kind: kind, Bytes: b})
	}
}

// wait waits until an instant. It returns false when the relay ends earlier.
func (t *tcpRelay) wait(until machine.Instant) bool {
	timer := time.NewTimer(t.relay.options.Clock.until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.relay.gone:
		return false
	}
}

//go:build !js

package reader

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The metrics server answers short requests of a few scrapers. Prometheus
// scrapes every 15 s to 60 s and sends its request at once.
const (
	// metricsConnections is how many connections are open at one time. It has
	// room for some scrapers, and for strangers who connect during a scrape. A
	// connection takes some 20 KiB.
	metricsConnections = 32
	metricsRequestTime = 2 * time.Second // to send the request; a TLS handshake before it has as long again
	metricsAnswerTime  = 5 * time.Second // to read the whole answer
	metricsHeader      = 8 << 10         // bytes of a request's header
)

// newMetricsServer returns a server that no client can block. If too many
// clients are connected, a new one replaces the oldest. A connection is closed
// after one answer.
func newMetricsServer(handler http.Handler, access *metricsAccess) *http.Server {
	s := &http.Server{
		Handler:           busy(access.guard(handler)),
		ReadTimeout:       metricsRequestTime,
		ReadHeaderTimeout: metricsRequestTime,
		WriteTimeout:      metricsAnswerTime,
		MaxHeaderBytes:    metricsHeader,
		// It would log each client that leaves during a handshake.
		ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if secure, ok := c.(*tls.Conn); ok {
				c = secure.NetConn()
			}
			return context.WithValue(ctx, connectionKey{}, c)
		},
	}
	s.SetKeepAlivesEnabled(false)
	return s
}

// metricsListener limits the connections of a listener. It uses TLS if access
// has a certificate.
func metricsListener(l net.Listener, access *metricsAccess) net.Listener {
	l = &displacing{Listener: l, most: metricsConnections}
	if access.certificate == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		Certificates: []tls.Certificate{*access.certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"}, // an HTTP/2 connection would stay open
	})
}

// displacing is a listener with a limit of open connections. One more
// connection closes the oldest that waits for a request. If all are being
// answered, it closes the oldest of all.
type displacing struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*connection // oldest first
}

// connection is a connection of a displacing listener.
type connection struct {
	net.Conn
	of   *displacing
	busy bool // its request is being answered; guarded by of.mu
}

// connectionKey is the key of the connection in a request's context.
type connectionKey struct{}

// Accept implements net.Listener.
func (l *displacing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	newest := &connection{Conn: c, of: l}
	if oldest := l.add(newest); oldest != nil {
		_ = oldest.Close() // the other side may be gone
	}
	return newest, nil
}

// add adds a connection. It returns the connection to close, or nil if there is
// room.
func (l *displacing) add(c *connection) (oldest *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most {
		i := max(0, slices.IndexFunc(l.open, func(c *connection) bool { return !c.busy }))
		oldest = l.open[i]
		l.open = slices.Delete(l.open, i, i+1)
	}
	l.open = append(l.open, c)
	return oldest
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	if i := slices.Index(c.of.open, c); i >= 0 {
		c.of.open = slices.Delete(c.of.open, i, i+1)
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// busy marks the connections whose requests next is answering.
func busy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connectionKey{}).(*connection)
		if ok {
			c.mark(true)
			defer c.mark(false)
		}
		next.ServeHTTP(w, r)
	})
}

func (c *connection) mark(busy bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.busy = busy
}

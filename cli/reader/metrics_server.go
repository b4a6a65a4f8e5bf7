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

// The server of metrics answers short questions of few scrapers. Prometheus scrapes
// every 15 s to 60 s and sends its request at once.
const (
	// metricsConnections are open at one time: some scrapers, and room for strangers
	// that connect while one of them is served. A connection takes some 20 KiB.
	metricsConnections = 32
	metricsRequestTime = 2 * time.Second // to send the request; over TLS as long for the handshake before
	metricsAnswerTime  = 5 * time.Second // to take the whole answer
	metricsHeader      = 8 << 10         // bytes of a request's header
)

// newMetricsServer returns a server that no client can keep from answering others:
// where too many are connected, the newest takes the place of the oldest.
// Connections are closed after one answer.
func newMetricsServer(handler http.Handler, access *metricsAccess) *http.Server {
	s := &http.Server{
		Handler:           busy(access.guard(handler)),
		ReadTimeout:       metricsRequestTime,
		ReadHeaderTimeout: metricsRequestTime,
		WriteTimeout:      metricsAnswerTime,
		MaxHeaderBytes:    metricsHeader,
		// It would tell of each client that goes away in the middle of a handshake.
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

// metricsListener bounds the connections of a listener, under TLS where access has
// a certificate.
func metricsListener(l net.Listener, access *metricsAccess) net.Listener {
	l = &displacing{Listener: l, most: metricsConnections}
	if access.certificate == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		Certificates: []tls.Certificate{*access.certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"}, // a connection of HTTP/2 would stay open
	})
}

// displacing keeps at most so many connections open: where one more comes, the
// oldest is closed of those that wait for a request, else the oldest of all.
type displacing struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*connection // oldest first
}

// connection is one of a displacing listener.
type connection struct {
	net.Conn
	of   *displacing
	busy bool // its request has come and is being answered; guarded by of.mu
}

// connectionKey finds the connection in a request's context.
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

// add takes a connection up, and gives the one that makes room for it; nil where
// there is room.
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

// busy marks the connections of requests that next answers.
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

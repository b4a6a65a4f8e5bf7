// Package hub is the middle of a fleet: a NATS server with JetStream in this process, or the operator's own.
//
//	sensors of site eu ──┐                      ┌── stream ackscope-flows-eu ────┐
//	                     ├── TLS, nkeys, NATS ──┼── stream ackscope-findings-eu ─┼── collector
//	sensors of site us ──┘                      └── object store of each site ───┘
package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/ackscope/ackscope/contrib/fleet/link"
)

// Options configure a hub.
type Options struct {
	Name    string // of the server, unique in a cluster
	Listen  string // HOST:PORT of clients
	Store   string // folder
	Sync    bool   // wait for the disk at each message
	Cluster string // HOST:PORT of the other servers' connections; empty for a single server
	Routes  []string
	TLS     TLS
	Plain   bool // listen beyond this machine without TLS
	Access  *Access
	Limits  Limits
}

// TLS names the files of a server's certificate.
type TLS struct {
	Cert, Key string
	CA        string // that signs the certificates of the other servers
}

// replicas is how many servers of a cluster keep each message. Two of three must have it before it counts as stored.
const replicas = 3

// readyWithin bounds the start of a server, which reads its store first.
const readyWithin = 2 * time.Minute

// Hub is a running server.
type Hub struct {
	server  *server.Server
	key     nkeys.KeyPair // of the hub's own connection
	options Options
}

// Start starts a server. It does not wait for the others of a cluster.
func Start(o Options) (*Hub, error) {
	settings, err := o.server()
	if err != nil {
		return nil, err
	}
	h := &Hub{options: o}
	if h.key, err = nkeys.CreateUser(); err != nil {
		return nil, err
	}
	own, err := h.key.PublicKey()
	if err != nil {
		return nil, err
	}
	settings.Nkeys = append(o.Access.users(), &server.NkeyUser{Nkey: own})
	if h.server, err = server.NewServer(settings); err != nil {
		return nil, err
	}
	h.server.Start()
	if !h.server.ReadyForConnections(readyWithin) {
		h.Stop()
		return nil, fmt.Errorf("hub: expected the server to be ready within %v, found it is not: is %s in use?",
			readyWithin, o.Listen)
	}
	return h, nil
}

// server returns the settings of the NATS server, without its users.
func (o *Options) server() (*server.Options, error) {
	host, port, err := address("--listen", o.Listen)
	if err != nil {
		return nil, err
	}
	s := &server.Options{
		ServerName: o.Name, Host: host, Port: port, JetStream: true, StoreDir: o.Store, SyncAlways: o.Sync, NoSigs: true,
		NoLog: true, MaxPayload: MostMessage, MaxControlLine: 4096, DisableShortFirstPing: true,
	}
	local := isLocal(host)
	if o.TLS.Cert != "" {
		if s.TLSConfig, err = o.TLS.config(false); err != nil {
			return nil, err
		}
		s.TLS = true
	} else if !local && !o.Plain {
		return nil, fmt.Errorf("--listen %s: expected --tls-cert and --tls-key, or --no-tls: others may read along",
			o.Listen)
	}
	if o.Cluster == "" {
		return s, nil
	}
	return s, o.cluster(s)
}

// cluster adds the connections to the other servers. A server that connects there may do everything. So beyond this
// machine each shows a certificate that the same CA signed.
func (o *Options) cluster(s *server.Options) error {
	host, port, err := address("--cluster", o.Cluster)
	if err != nil {
		return err
	}
	s.Cluster = server.ClusterOpts{Name: "ackscope", Host: host, Port: port}
	if s.Routes = routes(o.Routes); len(s.Routes) == 0 {
		return errors.New("--routes: expected the addresses of the other servers, as nats://HOST:PORT, found none")
	}
	if o.TLS.Cert == "" || o.TLS.CA == "" {
		if isLocal(host) {
			return nil
		}
		return fmt.Errorf("--cluster %s: expected --tls-cert, --tls-key and --tls-ca: who connects there is trusted",
			o.Cluster)
	}
	s.Cluster.TLSConfig, err = o.TLS.config(true)
	s.Cluster.TLSTimeout = tlsWithin.Seconds()
	return err
}

const tlsWithin = 5 * time.Second // for the handshake of two servers that both start

// config returns the settings of TLS. Servers of a cluster check each other's certificate.
func (t *TLS) config(mutual bool) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	if mutual {
		if config.ClientCAs, err = link.Pool(t.CA); err != nil {
			return nil, err
		}
		config.RootCAs, config.ClientAuth = config.ClientCAs, tls.RequireAndVerifyClientCert
	}
	return config, nil
}

func address(flag, text string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, fmt.Errorf("%s: expected HOST:PORT, found %q", flag, text)
	}
	if port, err = strconv.Atoi(number); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%s: expected a port up to 65535, found %q", flag, number)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// URL returns the address for clients.
func (h *Hub) URL() string { return h.server.ClientURL() }

// Stop ends the server.
func (h *Hub) Stop() {
	h.server.Shutdown()
	h.server.WaitForShutdown()
}

// Reload takes another access file's keys: new sites, and keys that no longer hold.
func (h *Hub) Reload(ctx context.Context, a *Access) error {
	o := h.options
	o.Access = a
	settings, err := o.server()
	if err != nil {
		return err
	}
	own, err := h.key.PublicKey()
	if err != nil {
		return err
	}
	settings.Nkeys = append(a.users(), &server.NkeyUser{Nkey: own})
	if err := h.server.ReloadOptions(settings); err != nil {
		return err
	}
	h.options = o
	return h.Declare(ctx)
}

// Declare makes the streams of all sites. It waits until enough servers of a cluster are there.
func (h *Hub) Declare(ctx context.Context) error {
	own, err := h.key.PublicKey()
	if err != nil {
		return err
	}
	c, err := nats.Connect("", nats.InProcessServer(h.server), nats.Nkey(own, h.key.Sign))
	if err != nil {
		return err
	}
	defer c.Close()
	copies := 1
	if h.options.Cluster != "" {
		copies = replicas
	}
	sites := slices.Sorted(maps.Keys(h.options.Access.Sites))
	return Declare(ctx, c, sites, copies, h.options.Limits)
}

// declareAgain is the time between two attempts: servers of a cluster need some seconds to choose a leader.
const declareAgain = 300 * time.Millisecond

// Declare makes the streams and object stores of sites, or changes their limits. It tries until the context ends.
func Declare(ctx context.Context, c *nats.Conn, sites []string, copies int, l Limits) error {
	js, err := jetstream.New(c)
	if err != nil {
		return err
	}
	for _, site := range sites {
		for {
			if err = l.declare(ctx, js, site, copies); err == nil {
				break
			}
			if api := new(jetstream.APIError); errors.As(err, &api) && api.Code == badRequest {
				return fmt.Errorf("site %s: %w", site, err)
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("site %s: %w", site, errors.Join(err, ctx.Err()))
			case <-time.After(declareAgain):
			}
		}
	}
	return nil
}

const badRequest = 400 // of JetStream's API: the configuration is wrong, and stays so

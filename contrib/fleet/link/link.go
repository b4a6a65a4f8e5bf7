// Package link connects to the hub of a fleet, with a key file and TLS.
package link

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/spf13/pflag"
)

// Options say how the hub is reached.
type Options struct {
	URLs []string // of one hub; several are the servers of a cluster
	Key  string   // file of the seed
	CA   string   // file of certificates that sign the hub's; empty for those of the system
	Cert string   // file of the client's own certificate, where the operator's NATS wants one
	Name string   // shown by the hub
	// Inbox is the prefix of subjects for answers.
	Inbox string
	// Notice, if not nil, receives a text when the connection goes and comes.
	Notice func(text string)
}

// Register adds the flags.
func (o *Options) Register(f *pflag.FlagSet) {
	f.StringSliceVar(&o.URLs, "hub", []string{"nats://127.0.0.1:4222"},
		"`URL` of the hub; several of a cluster, by comma")
	f.StringVar(&o.Key, "key", "", "`FILE` of the key that `ackscope-fleet hub key` wrote")
	f.StringVar(&o.CA, "tls-ca", "", "`FILE` of the certificate that signs the hub's (default: those of the system)")
	f.StringVar(&o.Cert, "tls-cert", "", "`FILE` of an own certificate with its key, where a NATS server asks for one")
}

const (
	// mostKey bounds a key file. A seed has 58 characters; a comment may stand beside it.
	mostKey = 4096
	// retry is the time between two attempts to connect. A random time of up to as much again keeps thousands of
	// sensors from coming back at one moment.
	// Source: choice, so that a sensor is back a second after its hub
	retry = 500 * time.Millisecond
	// connectWithin bounds one attempt. Two thousand sensors that come at one moment wait for each other.
	connectWithin = 10 * time.Second
)

// Connect connects. It does not wait until the hub is there: it tries for ever, and so does a connection that was
// lost. What is published meanwhile fails at once.
func Connect(o Options) (*nats.Conn, error) {
	list := []nats.Option{
		nats.Name(o.Name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(retry),
		nats.ReconnectJitter(retry, retry), nats.ReconnectBufSize(-1), nats.Timeout(connectWithin),
	}
	if o.Inbox != "" {
		list = append(list, nats.CustomInboxPrefix(o.Inbox))
	}
	if o.Key != "" {
		key, err := ReadKey(o.Key)
		if err != nil {
			return nil, err
		}
		public, err := key.PublicKey()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Key, err)
		}
		list = append(list, nats.Nkey(public, key.Sign))
	}
	config, err := o.tls()
	if err != nil {
		return nil, err
	}
	if config != nil {
		list = append(list, nats.Secure(config))
	}
	if o.Notice != nil {
		list = append(list,
			nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
				if err != nil {
					o.Notice("hub: connection lost: " + err.Error())
				}
			}),
			nats.ReconnectHandler(func(c *nats.Conn) { o.Notice("hub: connected to " + c.ConnectedServerName()) }),
			nats.ConnectHandler(func(c *nats.Conn) { o.Notice("hub: connected to " + c.ConnectedServerName()) }),
			nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
				if errors.Is(err, nats.ErrAuthorization) {
					o.Notice("hub: it does not know this key")
				}
			}),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.Notice("hub: " + err.Error()) }))
	}
	return nats.Connect(strings.Join(o.URLs, ","), list...)
}

// tls returns the TLS settings, or nil if the addresses alone decide.
func (o *Options) tls() (*tls.Config, error) {
	if o.CA == "" && o.Cert == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if o.CA != "" {
		pool, err := Pool(o.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	if o.Cert != "" {
		own, err := tls.LoadX509KeyPair(o.Cert, o.Cert)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert %s: %w", o.Cert, err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// Pool reads the certificates of a file.
func Pool(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: expected certificates in the form of PEM, found none", path)
	}
	return pool, nil
}

// ReadKey reads the seed of a file. Only its owner may be able to read the file. Errors never quote it.
func ReadKey(path string) (nkeys.KeyPair, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s: expected a file that only its owner can read (mode 600), found mode %o", path, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostKey))
	if err != nil {
		return nil, err
	}
	defer clear(text)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if key, err := nkeys.FromSeed([]byte(line)); err == nil {
			return key, nil
		}
		break
	}
	return nil, fmt.Errorf("%s: expected the seed of an nkey, as `ackscope-fleet hub key` writes it, found others", path)
}

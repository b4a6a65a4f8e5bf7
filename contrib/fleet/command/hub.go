package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/contrib/fleet/hub"
	"github.com/ackscope/ackscope/contrib/fleet/link"
)

// hub builds `ackscope-fleet hub`.
func (p *program) hub() *cobra.Command {
	o := hub.Options{Limits: hub.DefaultLimits()}
	var access string
	sizes := map[string]*int64{"--stream-size": &o.Limits.Bytes, "--packets-size": &o.Limits.Packets}
	texts := map[string]*string{}
	c := &cobra.Command{
		Use: "hub", Args: cobra.NoArgs,
		Short: "Keep what sensors tell until it is collected",
		Long: `hub runs a NATS server with JetStream. Each site has streams of its own, and keys that
may publish to the subjects of that site only.

Three servers keep every row three times: give each --cluster and --routes.
Where you run NATS already, "hub config" prints the users for its configuration, and
"hub declare" makes the streams.`,
		Example: `  ackscope-fleet hub key --site eu
  ackscope-fleet hub key --operator
  ackscope-fleet hub --listen 10.1.0.5:4222 --tls-cert hub.pem --tls-key hub.key`,
		RunE: func(c *cobra.Command, _ []string) error {
			for flag, text := range texts {
				n, err := app.ParseSize(*text)
				if err != nil {
					return fmt.Errorf("%s: %w", flag, err)
				}
				*sizes[flag] = n
			}
			var err error
			if o.Access, err = hub.ReadAccess(access); err != nil {
				return fmt.Errorf("%w: `ackscope-fleet hub key` makes the file", err)
			}
			return p.runHub(c, o, access)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Name, "name", "hub", "`NAME` of the server, another one for each of a cluster")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:4222", "`HOST:PORT` for sensors and collectors")
	f.StringVar(&o.Store, "store", "hub", "`FOLDER` of the streams")
	f.BoolVar(&o.Sync, "sync", false, "wait for the disk at each row: slower, but a loss of power takes none")
	f.StringVar(&o.Cluster, "cluster", "", "`HOST:PORT` for the other servers of a cluster")
	f.StringSliceVar(&o.Routes, "routes", nil, "`nats://HOST:PORT` of the other servers' --cluster, by comma")
	f.StringVar(&o.TLS.Cert, "tls-cert", "", "`FILE` of the certificate")
	f.StringVar(&o.TLS.Key, "tls-key", "", "`FILE` of its key")
	f.StringVar(&o.TLS.CA, "tls-ca", "", "`FILE` of the certificate that signs those of the other servers")
	f.BoolVar(&o.Plain, "no-tls", false, "listen beyond this machine without TLS: others can read along")
	f.StringVar(&access, "access", hub.AccessFile("keys"), "`FILE` of the public keys; read again on SIGHUP")
	texts["--stream-size"] = f.String("stream-size", "1GiB", "`SIZE` of each stream; sensors keep what finds no room")
	texts["--packets-size"] = f.String("packets-size", "1GiB", "`SIZE` of the fetched packets of each site")
	f.DurationVar(&o.Limits.Age, "age", o.Limits.Age, "`TIME` after which an uncollected row goes")
	f.DurationVar(&o.Limits.Remember, "remember", o.Limits.Remember, "`TIME` for which a row that comes again is dropped")
	c.AddCommand(p.hubKey(), p.hubConfig(), p.hubDeclare())
	return c
}

func (p *program) runHub(c *cobra.Command, o hub.Options, access string) error {
	ctx := c.Context()
	h, err := hub.Start(o)
	if err != nil {
		return err
	}
	defer h.Stop()
	p.notice("hub: listening on " + h.URL())
	if err := h.Declare(ctx); err != nil {
		return err
	}
	sites := slices.Sorted(maps.Keys(o.Access.Sites))
	p.notice(fmt.Sprintf("hub: ready, sites %v", sites))
	again, stop := hangUps()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again:
			a, err := hub.ReadAccess(access)
			if err == nil {
				err = h.Reload(ctx, a)
			}
			if err != nil {
				p.notice("hub: the keys stay as they were: " + err.Error())
				continue
			}
			p.notice(fmt.Sprintf("hub: keys read again, sites %v", slices.Sorted(maps.Keys(a.Sites))))
		}
	}
}

// hubKey builds `ackscope-fleet hub key`.
func (p *program) hubKey() *cobra.Command {
	var site, folder string
	var operator bool
	c := &cobra.Command{
		Use: "key", Args: cobra.NoArgs,
		Short: "Make a key for the sensors of a site, or for an operator",
		Long: `key writes a secret seed to a new file, which goes to the sensors of a site or to an
operator. It adds the public key to the file "access" beside it, which goes to the hub.`,
		Example: `  ackscope-fleet hub key --site eu
  ackscope-fleet hub key --operator`,
		RunE: func(*cobra.Command, []string) error {
			if (site == "") != operator {
				return errors.New("expected --site NAME or --operator, one of them")
			}
			path, err := hub.AddKey(folder, site)
			if err != nil {
				return err
			}
			fmt.Fprintf(p.out, "%s written: keep it secret\n", path)
			return nil
		},
	}
	c.Flags().StringVar(&site, "site", "", "`NAME` of the site")
	c.Flags().BoolVar(&operator, "operator", false, "make a key that collects, fetches and looks")
	c.Flags().StringVar(&folder, "keys", "keys", "`FOLDER` of the keys")
	return c
}

// hubConfig builds `ackscope-fleet hub config`.
func (p *program) hubConfig() *cobra.Command {
	var access string
	c := &cobra.Command{
		Use: "config", Args: cobra.NoArgs,
		Short: "Print the users of the fleet for a NATS server of your own",
		RunE: func(*cobra.Command, []string) error {
			a, err := hub.ReadAccess(access)
			if err != nil {
				return err
			}
			return a.WriteConfig(p.out)
		},
	}
	c.Flags().StringVar(&access, "access", hub.AccessFile("keys"), "`FILE` of the public keys")
	return c
}

const declareWithin = time.Minute

// hubDeclare builds `ackscope-fleet hub declare`.
func (p *program) hubDeclare() *cobra.Command {
	var access string
	var copies int
	o := link.Options{Name: "ackscope-fleet hub declare"}
	c := &cobra.Command{
		Use: "declare", Args: cobra.NoArgs,
		Short: "Make the streams at a NATS server of your own, with an operator's key",
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := hub.ReadAccess(access)
			if err != nil {
				return err
			}
			conn, err := link.Connect(o)
			if err != nil {
				return err
			}
			defer conn.Close()
			ctx, cancel := context.WithTimeout(c.Context(), declareWithin)
			defer cancel()
			sites := slices.Sorted(maps.Keys(a.Sites))
			if err := hub.Declare(ctx, conn, sites, copies, hub.DefaultLimits()); err != nil {
				return err
			}
			fmt.Fprintf(p.out, "streams of %d sites are there\n", len(sites))
			return nil
		},
	}
	c.Flags().StringVar(&access, "access", hub.AccessFile("keys"), "`FILE` of the public keys")
	c.Flags().IntVar(&copies, "replicas", 1, "`N` copies of each row: 3 in a cluster of three")
	o.Register(c.Flags())
	return c
}

// folder makes a folder that only this user can read.
func folder(path string) (string, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

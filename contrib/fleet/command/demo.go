package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/contrib/fleet/collect"
	"github.com/ackscope/ackscope/contrib/fleet/demo"
	"github.com/ackscope/ackscope/contrib/fleet/fetch"
	"github.com/ackscope/ackscope/contrib/fleet/hub"
	"github.com/ackscope/ackscope/contrib/fleet/link"
	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/contrib/fleet/sensor"
	"github.com/ackscope/ackscope/contrib/fleet/top"
)

// The demo's traffic. All games are over well before the demo ends, so that losses can be compared.
const (
	demoPlayers = 16
	demoJoin    = 10 * time.Second // until the last player joins
	demoGame    = 15 * time.Second
	demoLeast   = 40 * time.Second
	demoIdle    = 3 * time.Second // after which a flow has ended
)

// demo builds `ackscope-fleet demo`.
func (p *program) demo() *cobra.Command {
	var path string
	var plain bool
	var length time.Duration
	c := &cobra.Command{
		Use: "demo", Args: cobra.NoArgs,
		Short: "Run a hub, three sensors, a collector and top on this machine",
		Long: `demo simulates a game host at each of three sites, each with 16 players. A quarter of the
players are in 203.0.113.0/24, whose path loses 12 % of their packets. A sensor on each
host tells a hub, and a collector writes tables. top shows the fleet, and what all sites
have in common. It listens on this machine only, and ends after a minute.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if length < demoLeast {
				return fmt.Errorf("--for %v: expected at least %v", length, demoLeast)
			}
			ctx, cancel := context.WithTimeout(c.Context(), length)
			defer cancel()
			if path == "" {
				made, err := os.MkdirTemp("", "ackscope-fleet-")
				if err != nil {
					return err
				}
				defer func() { _ = os.RemoveAll(made) }() // the system's own rules remove it too
				path = made
			} else if err := os.MkdirAll(path, 0o750); err != nil {
				return err
			}
			return p.runDemo(ctx, path, plain, length)
		},
	}
	c.Flags().StringVar(&path, "dir", "", "`FOLDER` for all files, which stay; it may be new (default: a temporary one)")
	c.Flags().BoolVar(&plain, "plain", false, "print lines in place of the screen; at the end, fetch one finding")
	c.Flags().DurationVar(&length, "for", time.Minute, "`TIME` that it runs")
	return c
}

// fleetDemo is a fleet in one process.
type fleetDemo struct {
	*program
	said   io.Writer // by the sensors; not the terminal, where a screen would be spoiled
	folder string
	hub    *hub.Hub
	all    sync.WaitGroup
	lock   sync.Mutex
	failed error
}

// run runs one of the fleet's parts beside the others.
func (d *fleetDemo) run(what string, part func() error) {
	d.all.Go(func() {
		if err := part(); err != nil && !errors.Is(err, context.Canceled) {
			d.lock.Lock()
			defer d.lock.Unlock()
			d.failed = errors.Join(d.failed, fmt.Errorf("%s: %w", what, err))
		}
	})
}

func (d *fleetDemo) link(key, name string) link.Options {
	return link.Options{URLs: []string{d.hub.URL()}, Key: filepath.Join(d.folder, key), Name: name}
}

func (p *program) runDemo(ctx context.Context, path string, plain bool, length time.Duration) (err error) {
	d := &fleetDemo{program: p, folder: path, said: io.Discard}
	tell := func(string) {}
	if plain {
		tell, d.said = p.notice, p.complaints
	}
	games, err := demo.Simulate(path, 4, demoGame)
	if err != nil {
		return err
	}
	hosts := demo.Hosts(demoPlayers, demoJoin)
	if err := d.startHub(ctx, slices.Sorted(maps.Keys(hosts))); err != nil {
		return err
	}
	defer d.hub.Stop()
	tell("hub: " + d.hub.URL() + ", files in " + path)
	operator, err := link.Connect(d.link("operator.key", "ackscope-fleet demo"))
	if err != nil {
		return err
	}
	defer operator.Close()
	running, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		d.all.Wait()
		err = errors.Join(err, d.failed)
	}()
	begin := time.Now()
	for site, host := range hosts {
		capture := filepath.Join(path, site+".pcapng")
		d.run("host of "+site, func() error { return demo.Play(running, capture, games.Traffic(host), begin, true) })
		d.run("sensor of "+site, func() error { return d.sensor(running, site, capture) })
	}
	d.run("collector", func() error {
		x, err := collect.New(operator, collect.Options{
			Folder: filepath.Join(path, "tables"), Rows: collect.DefaultRows, Every: 2 * time.Second, Notice: tell,
			Unread: collect.DefaultUnread,
		})
		if err != nil {
			return err
		}
		err = x.Run(running)
		tell(fmt.Sprintf("collector: %d rows in files, %d came again, %d never came", x.Rows(), x.Again(), x.Missing()))
		return err
	})
	f := top.New()
	unwatch, err := f.Watch(operator)
	if err != nil {
		return err
	}
	defer unwatch()
	x := &fetchFlags{output: path}
	if !plain {
		return p.screen(ctx, f, operator, x)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(length - 10*time.Second): // the rest is for what follows
	}
	fmt.Fprint(p.out, f.Snapshot().Text(time.Now(), shown))
	return d.fetchOne(ctx, operator, x)
}

// fetchOne fetches the newest finding of the tables.
func (d *fleetDemo) fetchOne(ctx context.Context, operator *nats.Conn, x *fetchFlags) error {
	list, err := fetch.Find(filepath.Join(d.folder, "tables"), fetch.Choice{}, 1)
	if err != nil || len(list) == 0 {
		return errors.Join(err, errors.New("expected findings in the tables, found none"))
	}
	fmt.Fprintln(d.out)
	_, err = d.program.fetchOne(ctx, operator, list[0], x)
	return err
}

func (d *fleetDemo) startHub(ctx context.Context, sites []string) error {
	for _, site := range append([]string{""}, sites...) {
		if _, err := hub.AddKey(d.folder, site); err != nil {
			return err
		}
	}
	access, err := hub.ReadAccess(hub.AccessFile(d.folder))
	if err != nil {
		return err
	}
	d.hub, err = hub.Start(hub.Options{
		Name: "hub", Listen: "127.0.0.1:0", Store: filepath.Join(d.folder, "hub"), Access: access,
		Limits: hub.DefaultLimits(),
	})
	if err != nil {
		return err
	}
	if err := d.hub.Declare(ctx); err != nil {
		d.hub.Stop()
		return err
	}
	return nil
}

// sensor runs a sensor on the file of a host.
func (d *fleetDemo) sensor(ctx context.Context, site, capture string) error {
	s := &sensorFlags{link: d.link("site-"+site+".key", "ackscope-fleet demo"), ring: filepath.Join(d.folder,
		"ring-"+site)}
	s.sensor = sensor.Options{
		At: message.Place{Site: site, Sensor: "host-1"}, Health: 2 * time.Second,
		Fetch: sensor.FetchOptions{Allow: true, Bytes: sensor.DefaultFetch},
	}
	s.spool = sensor.SpoolOptions{Folder: filepath.Join(d.folder, "spool-"+site), Bytes: 16 << 20}
	s.capture = sourceFlags{read: []string{capture}, follow: true}
	s.drain, s.stay = time.Second, true
	if err := s.analysis(); err != nil {
		return err
	}
	s.sensor.Analysis.Limits = analyze.LiveLimits
	s.sensor.Analysis.Limits.Idle = demoIdle
	for { // the host begins its file
		if info, err := os.Stat(capture); err == nil && info.Size() > 0 {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	src, err := s.capture.open(ctx, func(string) {})
	if err != nil {
		return err
	}
	defer src.close()
	if err := s.openRing(src, 64<<20); err != nil {
		return err
	}
	p := &program{out: d.out, complaints: d.said}
	defer p.closeRing(s.sensor.Ring)
	return p.sense(ctx, s, src)
}

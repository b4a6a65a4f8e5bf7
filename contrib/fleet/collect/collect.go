// Package collect writes what a hub keeps as Parquet files.
//
//	DIR/flows/site=eu/00000000000000000001.parquet       rows of the stream ackscope-flows-eu, from its first on
//	DIR/flows/site=eu/00000000000000004097.parquet       and from the number 4097 on
//	DIR/findings/site=eu/00000000000000000001.parquet
//
// The files are the position: a collector goes on after the last row of the newest file. When the disk has a file,
// the hub lets its rows go. So a collector that is killed at any moment loses nothing and writes nothing twice.
package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ackscope/ackscope/contrib/fleet/message"
)

// Options configure a collector.
type Options struct {
	Folder string
	Sites  []string      // none means all that the hub has
	Rows   int           // most rows of a file
	Every  time.Duration // longest time that a row waits for its file
	Keep   bool          // leave the rows at the hub
	Notice func(text string)
}

const (
	// DefaultRows and DefaultEvery make files of some megabytes where traffic is busy, and few small ones.
	DefaultRows  = 1 << 16
	DefaultEvery = 10 * time.Second
	// retry is the time between two attempts to read a stream, as while a cluster chooses a leader.
	retry = 300 * time.Millisecond
	// look is the time between two looks for sites that are new.
	look = 10 * time.Second
)

// Collector collects until its context ends.
type Collector struct {
	options Options
	js      jetstream.JetStream
	rows    atomic.Uint64
	refused atomic.Uint64
	again   atomic.Uint64
	missing atomic.Uint64
}

// New returns a collector over a connection.
func New(hub *nats.Conn, o Options) (*Collector, error) {
	if o.Rows < 1 || o.Every <= 0 {
		return nil, fmt.Errorf("collect: expected at least one row of a file and a positive time, found %d and %v",
			o.Rows, o.Every)
	}
	for _, site := range o.Sites {
		if err := message.CheckName("site", site); err != nil {
			return nil, err
		}
	}
	js, err := jetstream.New(hub)
	return &Collector{options: o, js: js}, err
}

// Rows returns how many rows are in files of this run.
func (c *Collector) Rows() uint64 { return c.rows.Load() }

// Refused returns how many messages were no rows.
func (c *Collector) Refused() uint64 { return c.refused.Load() }

// Again returns how many rows came again, and were dropped.
func (c *Collector) Again() uint64 { return c.again.Load() }

// Missing returns how many rows never came, as far as the numbers of later ones show it. It counts the rows of
// partitions that Run has ended.
func (c *Collector) Missing() uint64 { return c.missing.Load() }

// Run collects from all streams until the context ends or one of them cannot go on.
func (c *Collector) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	begun := map[string]bool{}
	for ctx.Err() == nil {
		for _, name := range c.streams(ctx) {
			kind, site, ok := message.ParseStream(name)
			if !ok || begun[name] || len(c.options.Sites) > 0 && !slices.Contains(c.options.Sites, site) {
				continue
			}
			begun[name] = true
			all.Go(func() {
				if err := c.partition(ctx, kind, site); err != nil {
					stop(err)
				}
			})
		}
		wait := look
		if len(begun) == 0 {
			wait = retry
		}
		pause(ctx, wait)
	}
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// streams returns the streams that the hub has now.
func (c *Collector) streams(ctx context.Context) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	list := c.js.StreamNames(ctx, jetstream.WithStreamListSubject("ackscope.v1.>"))
	for name := range list.Name() {
		names = append(names, name)
	}
	return names
}

// partition collects from one stream. It tries again after errors of the connection.
func (c *Collector) partition(ctx context.Context, kind message.Kind, site string) error {
	p, err := openPartition(c.options.Folder, kind, site)
	if err != nil {
		return err
	}
	defer p.close()
	defer func() { c.missing.Add(p.seen.missing()) }()
	told := ""
	for ctx.Err() == nil {
		err := c.follow(ctx, p)
		other := new(otherStreamError)
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, ErrSecond), errors.As(err, &other), errors.Is(err, errDisk):
			return err
		case err.Error() != told:
			told = err.Error()
			c.notice(fmt.Sprintf("%s of site %s: %v; it tries again", kind, site, err))
		}
		pause(ctx, retry)
	}
	return nil
}

func (c *Collector) notice(text string) {
	if c.options.Notice != nil {
		c.options.Notice(text)
	}
}

// errDisk marks an error of writing a file. Trying again would hide that a disk is full.
var errDisk = errors.New("a file cannot be written")

// follow reads a stream from the position on, and writes files.
func (c *Collector) follow(ctx context.Context, p *partition) error {
	stream, err := c.js.Stream(ctx, message.Stream(p.kind, p.site))
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	if err := p.belongs(info.Created, info.State.LastSeq); err != nil {
		return err
	}
	if err := c.forget(ctx, p, stream); err != nil { // what a killed collector had written
		return err
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: p.at + 1,
	})
	if err != nil {
		return err
	}
	list, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer list.Stop()
	for ctx.Err() == nil {
		if err := c.stretch(ctx, p, list); err != nil {
			return err
		}
		if err := c.forget(ctx, p, stream); err != nil {
			return err
		}
	}
	return nil
}

// forget lets the hub remove the rows that are in files.
func (c *Collector) forget(ctx context.Context, p *partition, stream jetstream.Stream) error {
	if c.options.Keep || p.at == 0 || p.at == p.purged {
		return nil
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSequence(p.at+1)); err != nil {
		return err
	}
	p.purged = p.at
	return nil
}

// stretch reads rows until a file is full or its time has come, and writes the file. At the end of the context it
// writes what it has.
func (c *Collector) stretch(ctx context.Context, p *partition, list jetstream.MessagesContext) error {
	var t *table
	last, reached := p.at, p.at // the last row of the file, and the last message that was read
	within, cancel := context.WithTimeout(ctx, c.options.Every)
	defer cancel()
	var lost error // of the connection; what came before it is written
	for within.Err() == nil {
		m, err := list.Next(jetstream.NextContext(within))
		if err != nil {
			if within.Err() == nil {
				lost = err
			}
			break
		}
		r, bad := p.parse(m)
		if r.number <= reached {
			continue // an ordered consumer may begin again before the place
		}
		reached = r.number
		if bad == nil {
			bad = p.decode(&r)
		}
		if bad != nil {
			c.refuse(p, r.number, bad)
			continue
		}
		if !p.seen.add(r.id) {
			c.again.Add(1)
			continue
		}
		if t == nil {
			if t, err = p.begin(); err != nil {
				return fmt.Errorf("%w: %w", errDisk, err)
			}
		}
		if err := p.add(t, &r); err != nil {
			return fmt.Errorf("%w: %w", errDisk, err)
		}
		if last = r.number; t.rows == c.options.Rows {
			break
		}
	}
	if t == nil {
		return lost
	}
	if err := p.write(t, last); err != nil {
		if errors.Is(err, ErrSecond) {
			return err
		}
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	c.rows.Add(uint64(t.rows))
	return lost
}

// mostRefusals bounds the refused messages that are told one by one.
const mostRefusals = 20

func (c *Collector) refuse(p *partition, number uint64, why error) {
	switch n := c.refused.Add(1); {
	case n < mostRefusals:
		c.notice(fmt.Sprintf("%s of site %s: message %d is no row: %v", p.kind, p.site, number, why))
	case n == mostRefusals:
		c.notice("more messages are no rows; they are counted only")
	}
}

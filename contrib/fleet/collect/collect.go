// Package collect writes what a hub keeps as Parquet files.
//
//	DIR/flows/site=eu/00000000000000000001.parquet       rows of the stream ackscope-flows-eu, from its first on
//	DIR/flows/site=eu/00000000000000004097.parquet       and from the number 4097 on
//	DIR/findings/site=eu/00000000000000000001.parquet
//	DIR/unread/flows/site=eu/…                           rows of sensors of another version, as they came
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
	"github.com/ackscope/ackscope/export"
)

// Options configure a collector.
type Options struct {
	Folder string
	Sites  []string      // none means all that the hub has
	Rows   int           // most rows of a file
	Every  time.Duration // longest time that a row waits for its file
	Keep   bool          // leave the rows at the hub
	Unread int64         // most bytes of unread rows of a partition; beyond it they stay at the hub
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
	unread  atomic.Uint64
	schema  func(message.Kind) *export.Schema // of the rows in messages
}

// New returns a collector over a connection.
func New(hub *nats.Conn, o Options) (*Collector, error) {
	if o.Rows < 1 || o.Every <= 0 || o.Unread < 0 {
		return nil, fmt.Errorf("collect: expected at least one row of a file, a positive time and a size, found %d, %v and "+
			"%d", o.Rows, o.Every, o.Unread)
	}
	for _, site := range o.Sites {
		if err := message.CheckName("site", site); err != nil {
			return nil, err
		}
	}
	js, err := jetstream.New(hub)
	return &Collector{options: o, js: js, schema: message.Schema}, err
}

// Rows returns how many rows are in files of this run.
func (c *Collector) Rows() uint64 { return c.rows.Load() }

// Refused returns how many messages were no rows.
func (c *Collector) Refused() uint64 { return c.refused.Load() }

// Unread returns how many rows of other versions this run has kept.
func (c *Collector) Unread() uint64 { return c.unread.Load() }

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
	p, err := openPartition(c.options.Folder, kind, site, c.schema(kind))
	if err != nil {
		return err
	}
	defer p.close()
	if err := c.takeUp(p); err != nil {
		return err
	}
	defer func() { c.missing.Add(p.seen.missing()) }()
	told := ""
	for ctx.Err() == nil {
		err := c.follow(ctx, p)
		other, wait := new(otherStreamError), retry
		if errors.Is(err, errFull) {
			wait = look // the operator must do something
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, ErrSecond), errors.As(err, &other), errors.Is(err, errDisk):
			return err
		case err.Error() != told:
			told = err.Error()
			c.notice(fmt.Sprintf("%s of site %s: %v; it tries again", kind, site, err))
		}
		pause(ctx, wait)
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
		err := c.stretch(ctx, p, list)
		if err != nil && !errors.Is(err, errFull) {
			return err
		}
		if err := errors.Join(err, c.forget(ctx, p, stream)); err != nil {
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
	s, reached := &stretch{last: p.at}, p.at // reached is the last message that was read
	defer s.close()
	within, cancel := context.WithTimeout(ctx, c.options.Every)
	defer cancel()
	var lost error // of the connection, or of room; what came before it is written
	for within.Err() == nil && !s.full(c.options.Rows) {
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
		if err := c.take(p, s, &r, bad, m); errors.Is(err, errFull) {
			lost = err
			break
		} else if err != nil {
			return fmt.Errorf("%w: %w", errDisk, err)
		}
	}
	if s.empty() {
		return lost
	}
	if err := p.write(s); err != nil {
		if errors.Is(err, ErrSecond) {
			return err
		}
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	c.rows.Add(uint64(s.table.rows))
	if s.unread != nil {
		c.unread.Add(uint64(s.unread.rows))
	}
	return lost
}

// take adds a message to a stretch: to its rows, or to those of other versions. The argument bad says why it is no row,
// as far as its subject and its id tell.
func (c *Collector) take(p *partition, s *stretch, r *row, bad error, m jetstream.Msg) error {
	version, other := p.decoder.Other(r.body)
	if !other {
		return c.add(p, s, r, bad)
	}
	ok, err := p.room(s, r, c.options.Unread)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: they take %d of %d bytes in %s. Run a collector that knows them, or raise --unread-size. "+
			"Until then rows stay at the hub", errFull, p.kept, c.options.Unread, p.unread)
	}
	if bad == nil && !p.seen.add(r.id) {
		c.again.Add(1)
		return nil
	}
	c.tellOther(p, version)
	return p.keep(s, r, m, version)
}

// add adds a row of this version to a stretch.
func (c *Collector) add(p *partition, s *stretch, r *row, bad error) error {
	if bad == nil {
		bad = p.decode(r)
	}
	if bad != nil {
		c.refuse(p, r.number, bad)
		return nil
	}
	if !p.seen.add(r.id) {
		c.again.Add(1)
		return nil
	}
	if s.table == nil {
		var err error
		if s.table, err = p.begin(); err != nil {
			return err
		}
	}
	s.last = r.number
	return p.add(s.table, r)
}

// tellOther tells of a version once.
func (c *Collector) tellOther(p *partition, v message.Version) {
	if p.told[v] || len(p.told) >= mostVersions {
		return
	}
	p.told[v] = true
	c.notice(fmt.Sprintf("%s of site %s: rows of version %v are kept in %s: this collector reads %v. Use a collector of "+
		"the sensors' version", p.kind, p.site, v, p.unread, p.decoder.Own()))
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

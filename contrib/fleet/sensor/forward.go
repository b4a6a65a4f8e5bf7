package sensor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ackscope/ackscope/contrib/fleet/message"
)

const (
	// window is how many rows may be on their way to the hub.
	// Source: choice, so that a hub 100 ms away takes 10,000 rows a second
	window = 1024
	// removeEvery is after how many confirmed rows the spool lets them go. Rows that a kill leaves there are sent
	// again, and the hub drops them.
	removeEvery = 256
	idleWait    = 100 * time.Millisecond // for a next row, before confirmed rows are let go
	confirm     = 10 * time.Second       // for the hub to confirm a row, before it is sent again
	leastPause  = 50 * time.Millisecond  // before a row is sent again
	mostPause   = 2 * time.Second
)

// Forwarder brings the rows of a spool to the hub, in order. A row leaves the spool when the hub has confirmed it. A
// row that was sent and not confirmed is sent again, and the hub knows it by its id. So the spool's first row is the
// position, and nothing else must be kept.
type Forwarder struct {
	spool *Spool
	js    jetstream.JetStream
	// Notice, if not nil, receives what keeps rows from being forwarded: the same text once.
	Notice func(string)

	confirmed atomic.Uint64
	dropped   atomic.Uint64
	last      uint64 // the newest row, by its number in the spool, that was taken from it
	done      uint64 // the newest row that was confirmed, with all before it
	removed   uint64
	under     []sent
	pause     time.Duration // before rows are sent again
	told      string
}

// sent is a row on its way.
type sent struct {
	number  uint64
	message *nats.Msg
	future  jetstream.PubAckFuture // nil if it could not be sent
}

// NewForwarder returns a forwarder over a connection.
func NewForwarder(s *Spool, hub *nats.Conn) (*Forwarder, error) {
	js, err := jetstream.New(hub, jetstream.WithPublishAsyncMaxPending(2*window),
		jetstream.WithPublishAsyncTimeout(confirm))
	return &Forwarder{spool: s, js: js}, err
}

// Confirmed returns how many rows the hub has confirmed to this run.
func (f *Forwarder) Confirmed() uint64 { return f.confirmed.Load() }

// Dropped returns how many rows a full spool pushed out before this run could forward them.
func (f *Forwarder) Dropped() uint64 { return f.dropped.Load() }

// Run forwards until the context ends. The error is one of the spool.
func (f *Forwarder) Run(ctx context.Context) error {
	rows, err := f.spool.js.OrderedConsumer(ctx, spoolStream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	list, err := rows.Messages()
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	defer list.Stop()
	for ctx.Err() == nil {
		m, err := list.Next(jetstream.NextMaxWait(idleWait))
		switch {
		case errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded):
			err = f.settle(ctx, 0)
		case err == nil:
			err = f.take(ctx, m)
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("spool: %w", err)
		}
	}
	return nil
}

// take sends a row of the spool.
func (f *Forwarder) take(ctx context.Context, m jetstream.Msg) error {
	about, err := m.Metadata()
	if err != nil {
		return err
	}
	number := about.Sequence.Stream
	if f.last > 0 && number > f.last+1 {
		f.dropped.Add(number - f.last - 1) // the forwarder removes only rows that it took
	}
	f.last = number
	kind := message.Kind(strings.TrimPrefix(m.Subject(), spoolSubject))
	out := nats.NewMsg(message.Subject(kind, f.spool.at))
	out.Header.Set(message.Header, m.Headers().Get(spoolHeader))
	out.Data = m.Data()
	x := sent{number: number, message: out}
	if x.future, err = f.js.PublishMsgAsync(out); err != nil {
		f.notice(err)
		x.future = nil
	}
	f.under = append(f.under, x)
	most := window
	if x.future == nil {
		most = 0 // the hub is away: wait for it here
	}
	return f.settle(ctx, most)
}

// settle waits until at most so many rows are on their way, and lets confirmed rows go. It also takes what is
// confirmed already.
func (f *Forwarder) settle(ctx context.Context, most int) error {
	for len(f.under) > 0 && ctx.Err() == nil {
		done, failed := f.under[0].state(ctx, len(f.under) > most)
		if done {
			f.confirmed.Add(1)
			f.done, f.under = f.under[0].number, f.under[1:]
			f.pause, f.told = 0, ""
			continue
		}
		if failed != nil {
			f.notice(failed)
			f.resend(ctx)
			continue
		}
		break // the first one is on its way, and need not be waited for
	}
	if f.done-f.removed < removeEvery && (len(f.under) > 0 || f.done == f.removed) {
		return nil
	}
	if err := f.spool.stream.Purge(ctx, jetstream.WithPurgeSequence(f.done+1)); err != nil {
		return err
	}
	f.removed = f.done
	return nil
}

// errUnsent says that a row could not even be sent.
var errUnsent = errors.New("the hub is away")

// state reports whether the hub has confirmed a row, and otherwise why it will not. It waits for one of both if wait
// is set.
func (x *sent) state(ctx context.Context, wait bool) (done bool, failed error) {
	if x.future == nil {
		return false, errUnsent
	}
	if wait {
		select {
		case <-x.future.Ok():
			return true, nil
		case err := <-x.future.Err():
			x.future = nil
			return false, err
		case <-ctx.Done():
			return false, nil
		}
	}
	select {
	case <-x.future.Ok():
		return true, nil
	case err := <-x.future.Err():
		x.future = nil
		return false, err
	default:
		return false, nil
	}
}

// resend waits a little, longer each time, and sends the rows again that could not be sent or were refused.
func (f *Forwarder) resend(ctx context.Context) {
	f.pause = min(max(2*f.pause, leastPause), mostPause)
	select {
	case <-ctx.Done():
		return
	case <-time.After(f.pause):
	}
	for i := range f.under {
		x := &f.under[i]
		if x.future != nil {
			continue
		}
		future, err := f.js.PublishMsgAsync(x.message)
		if err != nil {
			f.notice(err)
			return
		}
		x.future = future
	}
}

// notice tells what went wrong, unless that was the last that was told.
func (f *Forwarder) notice(err error) {
	if text := err.Error(); f.Notice != nil && text != f.told {
		f.told = text
		f.Notice("forward: " + text)
	}
}

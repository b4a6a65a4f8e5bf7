// Package fetch brings the packets around a finding from the ring of its sensor.
//
//	finding in the tables → request → sensor: cut, anonymise → object store → file, its digest checked
package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/printable"
)

// Options say which packets are asked for.
type Options struct {
	// Before and After are the time around the finding. If Before is 0, the whole flow is asked for, as far as it has
	// come.
	Before, After time.Duration
	Plain         bool // as captured
	MostBytes     uint64
}

const (
	// DefaultAfter is how much of the flow after the finding is asked for: what follows it often explains it.
	DefaultAfter = 10 * time.Second
	// DefaultMost bounds a fetched file. Its size comes from the network.
	DefaultMost = 256 << 20
	// answerWithin bounds the work of a sensor.
	answerWithin = 2 * time.Minute
)

// Fetched is a capture that was fetched.
type Fetched struct {
	Finding *Finding
	Answer  *message.Answer
	Path    string
	Again   bool // the capture shows the finding again: the same rule, of the same side
}

// Request returns what to ask for a finding.
func (o *Options) Request(f *Finding) *message.Request {
	q := &message.Request{A: f.A, B: f.B, Plain: o.Plain}
	q.From, q.To = f.Begun, f.Ended
	if f.Ended == 0 { // it goes on
		q.To = max(f.Last, machine.Instant(time.Now().UnixNano()))
	}
	if o.Before > 0 {
		q.From, q.To = max(q.From, f.First.Add(-o.Before)), min(q.To, f.Last.Add(o.After))
	}
	return q
}

// Fetch asks the sensor of a finding for its packets, and writes them to a file.
func Fetch(ctx context.Context, hub *nats.Conn, f *Finding, path string, o Options) (*Fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := f.At.Check(); err != nil {
		return nil, err
	}
	body, err := message.Encode(o.Request(f))
	if err != nil {
		return nil, err
	}
	m, err := hub.RequestWithContext(ctx, message.Subject(message.Fetch, f.At), body)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("sensor %v: expected an answer, found that it is not there, or has no --allow-fetch", f.At)
	}
	if err != nil {
		return nil, fmt.Errorf("sensor %v: %w", f.At, err)
	}
	a, err := message.ParseAnswer(m.Data)
	if err == nil && a.Error != "" {
		err = errors.New(printable.String(a.Error))
	}
	if err != nil {
		return nil, fmt.Errorf("sensor %v: %w", f.At, err)
	}
	if o.MostBytes == 0 {
		o.MostBytes = DefaultMost
	}
	if a.Bytes > o.MostBytes {
		return nil, fmt.Errorf("sensor %v: expected at most %d bytes, found an offer of %d", f.At, o.MostBytes, a.Bytes)
	}
	if err := load(ctx, hub, f.At, a, path); err != nil {
		return nil, fmt.Errorf("sensor %v: %w", f.At, err)
	}
	return &Fetched{Finding: f, Answer: a, Path: path}, nil
}

// load copies an object to a file, which gets its name when its digest is right.
func load(ctx context.Context, hub *nats.Conn, at message.Place, a *message.Answer, path string) error {
	js, err := jetstream.New(hub)
	if err != nil {
		return err
	}
	store, err := js.ObjectStore(ctx, message.Bucket(at.Site))
	if err != nil {
		return err
	}
	object, err := store.Get(ctx, a.Object)
	if err != nil {
		return err
	}
	defer func() { _ = object.Close() }() // the digest says whether all of it came
	var outputs outfile.Outputs
	file, err := outputs.Whole(path, outfile.Payload)
	if err != nil {
		return err
	}
	defer outputs.Abandon()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, sum), io.LimitReader(object, int64(a.Bytes)+1))
	if err != nil {
		return err
	}
	if found := hex.EncodeToString(sum.Sum(nil)); uint64(n) != a.Bytes || found != a.Digest {
		return fmt.Errorf("expected %d bytes with the digest %s, found %d with %s", a.Bytes, a.Digest, n, found)
	}
	return file.Commit()
}

// Shows analyses the fetched capture, and reports whether it shows the finding again.
func (x *Fetched) Shows(o analyze.Options) error {
	in, err := capture.Open([]string{x.Path}, capture.Options{})
	if err != nil {
		return err
	}
	defer in.Close()
	session, err := analyze.RunTwice(in, o)
	if err != nil {
		return err
	}
	for _, f := range session.Flows() {
		for _, found := range f.Findings() {
			if found.Rule.ID == x.Finding.Rule && found.Side.String() == x.Finding.Side {
				x.Again = true
			}
		}
	}
	return nil
}

package sensor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/rewrite/anonymise"
	"github.com/ackscope/ackscope/ring"
)

// FetchOptions say what a sensor gives away. The zero value gives nothing.
type FetchOptions struct {
	Allow bool   // answer requests, with anonymised packets
	Plain bool   // answer requests for packets as captured too
	Bytes int64  // most bytes of one answer
	Work  string // folder for temporary files
}

const (
	// DefaultFetch bounds one answer.
	DefaultFetch = 64 << 20
	// fetchWithin bounds the work on one request.
	fetchWithin = 100 * time.Second
	// mostWaiting is how many requests may wait. A sensor works on one at a time.
	mostWaiting = 64
	// room is the memory for the tables of anonymised addresses, datagrams and streams.
	room = 128 << 20
	// mostMissing bounds the parts that an answer says are missing.
	mostMissing = 8
)

// fetcher answers requests for packets.
type fetcher struct {
	hub     *nats.Conn
	options *Options
	key     [32]byte // of this run: equal addresses have equal replacements in all its answers
}

func newFetcher(hub *nats.Conn, o *Options) *fetcher {
	f := &fetcher{hub: hub, options: o}
	_, _ = rand.Read(f.key[:]) // it never fails
	return f
}

// serve answers until the context ends.
func (f *fetcher) serve(ctx context.Context) error {
	js, err := jetstream.New(f.hub)
	if err != nil {
		return err
	}
	requests := make(chan *nats.Msg, mostWaiting)
	s, err := f.hub.ChanSubscribe(message.Subject(message.Fetch, f.options.At), requests)
	if err != nil {
		return err
	}
	go func() {
		defer func() { _ = s.Unsubscribe() }()
		for {
			select {
			case <-ctx.Done():
				return
			case m := <-requests:
				body, err := message.Encode(f.answer(ctx, js, m.Data))
				if err == nil {
					err = m.Respond(body)
				}
				if err != nil {
					f.options.Notice("fetch: " + err.Error())
				}
			}
		}
	}()
	return nil
}

// answer does what a request asks for. Its errors tell no path of this host.
func (f *fetcher) answer(ctx context.Context, js jetstream.JetStream, body []byte) *message.Answer {
	q, err := message.ParseRequest(body)
	if err != nil {
		return &message.Answer{Error: err.Error()}
	}
	if q.Plain && !f.options.Fetch.Plain {
		return &message.Answer{Error: "this sensor gives only anonymised packets: its --allow-plain is not set"}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	a, err := f.cut(ctx, js, q)
	if err != nil {
		f.options.Notice("fetch: " + err.Error())
		why := "the sensor could not make the capture; its log says why"
		if errors.Is(err, errNone) {
			why = errNone.Error()
		}
		return &message.Answer{Error: why}
	}
	f.options.Notice(fmt.Sprintf("fetch: gave %d packets between %v and %v, %s", a.Frames, q.A, q.B, plainWord(q.Plain)))
	return a
}

func plainWord(plain bool) string {
	if plain {
		return "as captured"
	}
	return "anonymised"
}

var errNone = errors.New("the ring has no such packets any more, or never had")

// cut cuts the ring and puts the capture into the object store.
func (f *fetcher) cut(ctx context.Context, js jetstream.JetStream, q *message.Request) (*message.Answer, error) {
	r := f.options.Ring
	if r == nil {
		return nil, errNone
	}
	if err := r.Flush(); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(f.options.Fetch.Work, "cut-*.pcapng")
	if err != nil {
		return nil, err
	}
	defer discard(file)
	made, err := r.Cut(ctx, file, ring.Span{
		From: q.From, To: q.To, Pair: ring.Pair{A: q.A, B: q.B}, Bytes: f.options.Fetch.Bytes,
	})
	if err != nil {
		return nil, err
	}
	a := &message.Answer{Frames: made.Frames, Plain: q.Plain}
	for i := range made.Missing {
		if i == mostMissing {
			a.Missing = append(a.Missing, "and more")
			break
		}
		a.Missing = append(a.Missing, made.Missing[i].Reason.String())
	}
	if a.Frames == 0 {
		return nil, errNone
	}
	out := file
	if !q.Plain {
		if out, err = f.anonymised(file.Name()); err != nil {
			return nil, err
		}
		defer discard(out)
	}
	return a, f.put(ctx, js, out, a)
}

func discard(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// anonymised copies a capture without addresses and contents. What no key opens is replaced as bytes.
func (f *fetcher) anonymised(path string) (*os.File, error) {
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := os.CreateTemp(f.options.Fetch.Work, "cut-*.pcapng")
	if err != nil {
		return nil, err
	}
	if err := f.copy(in, out); err != nil {
		discard(out)
		return nil, err
	}
	return out, nil
}

func (f *fetcher) copy(in *capture.Input, out io.Writer) error {
	w, err := capture.NewWriter(out, capture.WriterOptions{Application: "ackscope-fleet"})
	if err != nil {
		return err
	}
	known := map[int]int{}
	analysis := analyze.Options{Registry: f.options.Analysis.Registry, DecodeAs: f.options.Analysis.DecodeAs}
	_, err = anonymise.Run(in, analysis, anonymise.Options{Key: f.key, Blank: true, Room: room},
		func(frame *capture.Frame) error {
			copied := *frame
			id, ok := known[frame.Interface]
			if !ok {
				if id, err = w.AddInterface(nameless(in, frame)); err != nil {
					return err
				}
				known[frame.Interface] = id
			}
			copied.Interface = id
			return w.WriteFrame(&copied)
		})
	return errors.Join(err, w.Close())
}

// nameless describes the interface of a frame by its numbers only.
func nameless(in *capture.Input, frame *capture.Frame) capture.Interface {
	x := capture.Interface{Name: fmt.Sprintf("if%d", frame.Interface), LinkType: frame.LinkType}
	if list := in.Interfaces(0); frame.Interface < len(list) {
		const longest = 262144 // libpcap's MAXIMUM_SNAPLEN: a larger number means no limit
		of := &list[frame.Interface]
		x.SnapLength, x.Resolution, x.Statistics = min(of.SnapLength, longest), of.Resolution, of.Statistics.Bounded()
	}
	return x
}

// put puts a file into the object store, and notes its digest.
func (f *fetcher) put(ctx context.Context, js jetstream.JetStream, file *os.File, a *message.Answer) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, file)
	if err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	a.Digest, a.Bytes = hex.EncodeToString(sum.Sum(nil)), uint64(n)
	a.Object = f.options.At.Sensor + "." + a.Digest
	store, err := js.ObjectStore(ctx, message.Bucket(f.options.At.Site))
	if err != nil {
		return fmt.Errorf("object store: %w", err)
	}
	if _, err = store.Put(ctx, jetstream.ObjectMeta{Name: a.Object}, file); err != nil {
		return fmt.Errorf("object store: %s", printable.String(err.Error()))
	}
	return nil
}

package sensor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ackscope/ackscope/contrib/fleet/message"
)

const (
	spoolStream  = "spool"
	spoolSubject = "spool." // and the kind
	// spoolHeader holds the id of a row. Under the header of the hub's messages the spool would compare it too: it
	// need not, and the kinds have numbers of their own.
	spoolHeader = "Ackscope-Id"
	// spooling is how many rows may be on their way into the spool. It bounds what a kill can take.
	spooling = 256
	// spoolWithin bounds the start of the spool and each write to it, on a disk that is busy.
	spoolWithin = 30 * time.Second
	// LeastSpool is the smallest spool: the server writes blocks, and removes whole messages of them.
	LeastSpool = 1 << 20
)

// Spool keeps rows on the disk until the hub has them. It is a JetStream in this process, which listens nowhere.
// When it is full, the oldest row goes. Only Tell and Close write to it, and the forwarder removes what it forwarded.
type Spool struct {
	at     message.Place
	epoch  string
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream

	lock    sync.Mutex
	told    map[message.Kind]uint64
	pending []jetstream.PubAckFuture
}

// SpoolOptions configure a spool.
type SpoolOptions struct {
	Folder string
	Bytes  int64 // beyond that the oldest row goes
	Sync   bool  // wait for the disk at each row, so that a loss of power takes none
}

// OpenSpool opens the spool of a sensor, and takes over the rows of earlier runs.
func OpenSpool(ctx context.Context, at message.Place, o SpoolOptions) (*Spool, error) {
	if o.Bytes < LeastSpool {
		return nil, fmt.Errorf("--spool-size: expected at least %d bytes, found %d", LeastSpool, o.Bytes)
	}
	epoch, err := message.NewEpoch(time.Now())
	if err != nil {
		return nil, err
	}
	s := &Spool{at: at, epoch: epoch, told: map[message.Kind]uint64{}}
	settings := &server.Options{
		ServerName: "spool", DontListen: true, JetStream: true, StoreDir: o.Folder, SyncAlways: o.Sync, NoSigs: true,
		NoLog:      true,
		MaxPayload: 2 * message.MostBody,
	}
	if s.server, err = server.NewServer(settings); err != nil {
		return nil, fmt.Errorf("spool %s: %w", o.Folder, err)
	}
	s.server.Start()
	if err = s.open(ctx, o); err != nil {
		s.Close()
		return nil, fmt.Errorf("spool %s: %w", o.Folder, err)
	}
	return s, nil
}

func (s *Spool) open(ctx context.Context, o SpoolOptions) (err error) {
	if !s.server.ReadyForConnections(spoolWithin) {
		return fmt.Errorf("expected it to be ready within %v, found it is not", spoolWithin)
	}
	if s.conn, err = nats.Connect("", nats.InProcessServer(s.server)); err != nil {
		return err
	}
	if s.js, err = jetstream.New(s.conn, jetstream.WithPublishAsyncMaxPending(2*spooling)); err != nil {
		return err
	}
	s.stream, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: spoolStream, Subjects: []string{spoolSubject + "*"}, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardOld, MaxBytes: o.Bytes,
	})
	return err
}

// Epoch returns the name of this run.
func (s *Spool) Epoch() string { return s.epoch }

// Tell adds a row. It may return before the row is stored; Settle waits for that.
func (s *Spool) Tell(ctx context.Context, kind message.Kind, row []byte) error {
	if len(row) > message.MostBody {
		return fmt.Errorf("row of %s: expected at most %d bytes, found %d", kind, message.MostBody, len(row))
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	m := nats.NewMsg(spoolSubject + string(kind))
	m.Header.Set(spoolHeader, message.ID{Sensor: s.at.Sensor, Epoch: s.epoch, Seq: s.told[kind] + 1}.String())
	m.Data = row
	f, err := s.js.PublishMsgAsync(m)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.told[kind]++
	if s.pending = append(s.pending, f); len(s.pending) >= spooling {
		return s.settle(ctx)
	}
	return nil
}

// Settle waits until all rows are stored.
func (s *Spool) Settle(ctx context.Context) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.settle(ctx)
}

func (s *Spool) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, spoolWithin)
	defer cancel()
	for i, f := range s.pending {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return fmt.Errorf("spool: %w", err)
		case <-ctx.Done():
			s.pending = s.pending[i:]
			return fmt.Errorf("spool: %w", ctx.Err())
		}
	}
	s.pending = s.pending[:0]
	return nil
}

// Told returns how many rows of each kind this run told.
func (s *Spool) Told() map[message.Kind]uint64 {
	s.lock.Lock()
	defer s.lock.Unlock()
	told := map[message.Kind]uint64{}
	for kind, n := range s.told {
		told[kind] = n
	}
	return told
}

// Waiting returns the rows in the spool, and their size in bytes.
func (s *Spool) Waiting(ctx context.Context) (rows, bytes uint64, err error) {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("spool: %w", err)
	}
	return info.State.Msgs, info.State.Bytes, nil
}

// Close ends the spool. What it holds stays on the disk.
func (s *Spool) Close() {
	if s.conn != nil {
		s.conn.Close()
	}
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

package hub

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ackscope/ackscope/contrib/fleet/message"
)

// MostMessage bounds one message: chunks of packets are the largest.
// Source: the object store's chunks of 128 kB, and as much again for headers
const MostMessage = 256 << 10

// Limits bound what a hub keeps of each site.
type Limits struct {
	Bytes    int64         // of each stream; a sensor keeps its rows while its site's stream is full
	Age      time.Duration // of a row that no collector takes
	Remember time.Duration // how long the ids of messages are known, so that a second one is dropped
	Packets  int64         // bytes of fetched packets
	Keep     time.Duration // of fetched packets
}

// DefaultLimits hold where the operator gives none.
func DefaultLimits() Limits {
	return Limits{
		Bytes: 1 << 30, Age: 72 * time.Hour, Remember: 2 * time.Hour, Packets: 1 << 30, Keep: 7 * 24 * time.Hour,
	}
}

func (l Limits) declare(ctx context.Context, js jetstream.JetStream, site string, copies int) error {
	for _, kind := range message.Stored {
		if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: message.Stream(kind, site), Subjects: []string{message.Subjects(kind, site)}, Storage: jetstream.FileStorage,
			// A full stream refuses: the sensor then keeps the row, and nothing is lost unseen.
			Discard: jetstream.DiscardNew, MaxBytes: l.Bytes, MaxAge: l.Age, Duplicates: l.Remember,
			MaxMsgSize: message.MostBody, Compression: jetstream.S2Compression, Replicas: copies,
			// Only the collector removes rows, by purging what it has written.
			DenyDelete: true,
		}); err != nil {
			return err
		}
	}
	_, err := js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: message.Bucket(site), MaxBytes: l.Packets, TTL: l.Keep, Storage: jetstream.FileStorage, Replicas: copies,
	})
	return err
}

func routes(list []string) []*url.URL { return server.RoutesFromStr(strings.Join(list, ",")) }

package fleet_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ackscope/ackscope/contrib/fleet/link"
	"github.com/ackscope/ackscope/contrib/fleet/message"
)

// connect connects with a key, as a process of that site.
func (f *fleet) connect(key, site string) *nats.Conn {
	f.t.Helper()
	c, err := link.Connect(link.Options{URLs: f.urls, Key: key, Inbox: message.Inbox(site)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Close)
	until(f.t, 20*time.Second, c.IsConnected)
	return c
}

// TestSecondCollector begins a second collector on the folder of another one, and one that has no lock to find.
func TestSecondCollector(t *testing.T) {
	f := newFleet(t, 1, []string{"eu"})
	first := f.collector()
	f.numbers("eu", "eu-1", 1280, 100_000)
	until(t, time.Minute, func() bool { _, n := readTables(t, f.file("tables")); return n == 1280 })
	second := f.collector()
	if err := second.wait(30 * time.Second); err == nil || !strings.Contains(second.said(),
		"expected no other collector") {
		t.Errorf("expected that a second collector refuses, found %v, and that it says %q", err, second.said())
	}
	// Without the lock, as over a network file system that has none, the name of the next file decides.
	for _, kind := range message.Stored {
		if err := os.Remove(f.file("tables/" + string(kind) + "/site=eu/.lock")); err != nil {
			t.Fatal(err)
		}
	}
	third := f.collector()
	third.says("connected", 30*time.Second)
	time.Sleep(time.Second) // both have found the position
	f.numbers("eu", "eu-2", 1280, 100_000)
	until(t, time.Minute, func() bool { return !first.running() || !third.running() })
	left := first
	if !first.running() {
		left = third
	}
	until(t, time.Minute, func() bool { _, n := readTables(t, f.file("tables")); return n >= 2560 || !left.running() })
	c, n := readTables(t, f.file("tables"))
	twice := 0
	for _, of := range c {
		for _, seen := range of {
			for _, times := range seen {
				twice += times - 1
			}
		}
	}
	t.Logf("%d rows, %d twice; the first collector runs: %v, the third: %v", n, twice, first.running(), third.running())
	if twice > 0 {
		t.Errorf("expected no row twice, found %d", twice)
	}
}

// TestForeignKey tries everything that the sensors of one site must not do to another.
func TestForeignKey(t *testing.T) {
	f := newFleet(t, 1, []string{"eu", "us"})
	var denied atomic.Int64
	c := f.connect(f.key("us"), "us")
	c.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if strings.Contains(err.Error(), "ermissions violation") || strings.Contains(err.Error(), "ermissions Violation") {
			denied.Add(1)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	js, err := jetstream.New(c)
	if err != nil {
		t.Fatal(err)
	}
	own := message.Place{Site: "us", Sensor: "us-1"}
	if _, err := js.Publish(ctx, message.Subject(message.Flows, own), nil); err != nil {
		t.Errorf("own subject: %v", err)
	}
	other := message.Place{Site: "eu", Sensor: "eu-1"}
	publish := []string{
		message.Subject(message.Flows, other), message.Subject(message.Findings, other), message.Subject(message.Health,
			other),
		message.Subject(message.Fetch, other), message.Subject(message.Fetch, own), "$O." + message.Bucket("eu") + ".C.x",
		"$JS.API.STREAM.PURGE." + message.Stream(message.Flows, "us"),
		"$JS.API.STREAM.DELETE." + message.Stream(message.Flows, "us"),
		"$JS.API.STREAM.PURGE." + message.Stream(message.Flows, "eu"), "$JS.API.STREAM.CREATE.mine", "$JS.API.STREAM.NAMES",
		"$JS.API.CONSUMER.CREATE." + message.Stream(message.Flows, "eu"),
		"$JS.API.STREAM.INFO." + message.Stream(message.Flows, "eu"),
		"$SYS.REQ.SERVER.PING", "anything",
	}
	for _, subject := range publish {
		before := denied.Load()
		if err := c.PublishRequest(subject, message.Inbox("us")+".x", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		until(t, 5*time.Second, func() bool { return denied.Load() > before })
	}
	subscribe := []string{
		">", "ackscope.v1.>", message.Subjects(message.Flows, "us"), message.Subjects(message.Fetch, "eu"),
		message.Subjects(message.Health, ""), "_INBOX.>", message.Inbox("eu") + ".>", "$JS.ACK.>", "$SYS.>",
	}
	for _, subject := range subscribe {
		before := denied.Load()
		if _, err := c.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		_ = c.Flush()
		until(t, 5*time.Second, func() bool { return denied.Load() > before })
	}
	t.Logf("%d of %d attempts refused", denied.Load(), len(publish)+len(subscribe))

	// A sensor that is started with the key of another site: its rows stay in its spool.
	s := f.numbers("eu", "eu-1", 64, 1000, "--drain", "2s")
	s.kill()
	s.args[3] = f.key("us")
	s.again()
	if err := s.wait(time.Minute); err != nil {
		t.Fatal(err)
	}
	o := f.connect(f.operator(), "x")
	ojs, err := jetstream.New(o)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := ojs.Stream(ctx, message.Stream(message.Flows, "eu"))
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; strings.Contains(s.said(), "left 0") {
		t.Errorf("expected that rows of eu with the key of us stay in the spool, found %d stored, %s", n, s.said())
	}

	// Without a key, and with one that the hub does not know.
	for _, key := range []string{"", unknownKey(t)} {
		c, err := link.Connect(link.Options{URLs: f.urls, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		if c.IsConnected() {
			t.Errorf("key %q: expected that the hub refuses, found a connection", key)
		}
		c.Close()
	}
}

// TestHostileRows publishes what no sensor sends, with a site's own key. The collector must refuse each, and go on.
func TestHostileRows(t *testing.T) {
	f := newFleet(t, 1, []string{"eu"})
	collector := f.collector()
	c := f.connect(f.key("eu"), "eu")
	js, err := jetstream.New(c)
	if err != nil {
		t.Fatal(err)
	}
	at := message.Place{Site: "eu", Sensor: "eu-1"}
	epoch, err := message.NewEpoch(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	good := message.Append(nil, message.Flows, syntheticRow(message.Flows))
	noise := make([]byte, 2000)
	_, _ = rand.Read(noise)
	bodies := [][]byte{
		nil,
		{0},
		noise, good[:len(good)-1], append(good[:len(good):len(good)], 0), []byte(strings.Repeat("\xff", 60_000)),
		message.Append(nil, message.Findings, syntheticRow(message.Findings)),
		message.Append(nil, message.Flows, message.Schema(message.Flows).Cells()), // nothing is set
	}
	for i := range len(good) { // one byte after the other is another one
		b := append([]byte(nil), good...)
		b[i] ^= 0x81
		bodies = append(bodies, b)
	}
	send := func(sensor, id string, body []byte) {
		m := nats.NewMsg(message.Subject(message.Flows, message.Place{Site: "eu", Sensor: sensor}))
		if id != "" {
			m.Header.Set(message.Header, id)
		}
		m.Data = body
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	n := uint64(0)
	id := func() string { n++; return message.ID{Sensor: "eu-1", Epoch: epoch, Seq: n}.String() }
	for _, b := range bodies {
		send("eu-1", id(), b)
	}
	for i, bad := range []string{
		"", "x", "eu-2." + epoch + ".1", "eu-1." + epoch + ".0", "eu-1." + epoch + ".-1",
		"eu-1." + epoch + ".99999999999999999999",
		"eu-1." + strings.ToUpper(epoch) + "A.1", "../../x." + epoch + ".1", "eu-1." + epoch + ".01", strings.Repeat("a",
			3000),
	} {
		_ = i
		send("eu-1", bad, good)
	}
	for _, sensor := range []string{"EU", "a_b", "-x", strings.Repeat("y", 33), "..", "a/b", "\u202e"} {
		if strings.Contains(sensor, ".") {
			continue // the client refuses it
		}
		send(sensor, id(), good)
	}
	send(at.Sensor, id(), good)
	last := n
	until(t, time.Minute, func() bool {
		c, _ := readTables(t, f.file("tables"))
		return c[message.Flows]["eu-1 "+epoch][last] == 1 || !collector.running()
	})
	if !collector.running() {
		t.Fatal("the collector ended")
	}
	if err := collector.stop(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(collector.said()), "\n")
	t.Logf("%d hostile messages: %s", int(n)+10, lines[len(lines)-1])
	if !strings.Contains(collector.said(), "is no row") {
		t.Errorf("expected that the collector tells of refused messages, found %s", collector.said())
	}
}

// TestMany connects very many sensors, each of which tells rows.
func TestMany(t *testing.T) {
	sensors, rows := 100, 10
	if heavy() {
		sensors, rows = 2000, 20
	}
	f := newFleet(t, 1, []string{"eu"})
	conns := make([]*nats.Conn, sensors)
	begun := time.Now()
	each(sensors, func(i int) {
		c, err := link.Connect(link.Options{URLs: f.urls, Key: f.key("eu"), Inbox: message.Inbox("eu")})
		if err != nil {
			t.Error(err)
			return
		}
		conns[i] = c
	})
	until(t, time.Minute, func() bool {
		for _, c := range conns {
			if c == nil || !c.IsConnected() {
				return false
			}
		}
		return true
	})
	connected := time.Since(begun)
	collector := f.collector()
	body := message.Append(nil, message.Flows, syntheticRow(message.Flows))
	begun = time.Now()
	each(sensors, func(i int) {
		defer conns[i].Close()
		at := message.Place{Site: "eu", Sensor: fmt.Sprintf("s-%d", i)}
		epoch, _ := message.NewEpoch(time.Now())
		js, err := jetstream.New(conns[i])
		if err != nil {
			t.Error(err)
			return
		}
		for k := range rows {
			m := nats.NewMsg(message.Subject(message.Flows, at))
			m.Header.Set(message.Header, message.ID{Sensor: at.Sensor, Epoch: epoch, Seq: uint64(k + 1)}.String())
			m.Data = body
			if _, err := js.PublishMsg(t.Context(), m); err != nil {
				t.Error(err)
			}
		}
	})
	stored := time.Since(begun)
	until(t, time.Minute, func() bool { _, n := readTables(t, f.file("tables")); return n == sensors*rows })
	if err := collector.stop(); err != nil {
		t.Error(err)
	}
	t.Logf("%d sensors connected in %.1f s; %d rows, each confirmed before the next, in %.1f s: %.0f a second; "+
		"in files after %.1f s",
		sensors, connected.Seconds(), sensors*rows, stored.Seconds(), float64(sensors*rows)/stored.Seconds(),
		time.Since(begun).Seconds())
}

// each runs f for each number, 64 at a time.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	gate := make(chan struct{}, 64)
	for i := range n {
		gate <- struct{}{}
		all.Go(func() {
			defer func() { <-gate }()
			f(i)
		})
	}
	all.Wait()
}

// unknownKey writes a key that no access file has.
func unknownKey(t *testing.T) string {
	f := &fleet{folder: t.TempDir()}
	newKey(t, f.folder)
	return filepath.Join(f.folder, "operator.key")
}

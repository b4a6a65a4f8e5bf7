package collect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/parquet-go/parquet-go"

	"github.com/ackscope/ackscope/contrib/fleet/hub"
	"github.com/ackscope/ackscope/contrib/fleet/link"
	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/export"
)

// versions are the columns of flows, as several versions have them.
func versions(n int) (list []*export.Schema) {
	for i := range n {
		s := *message.Schema(message.Flows)
		if i > 0 {
			s.Columns = append(slices.Clone(s.Columns), export.Column{
				Name: fmt.Sprintf("new_in_%d", i), Type: export.Uint, Absent: export.Omitted,
			})
		}
		list = append(list, &s)
	}
	return list
}

// bench is a hub with one site, whose sensors tell rows of several versions.
type bench struct {
	t        *testing.T
	folder   string
	hub      *hub.Hub
	operator *nats.Conn
	sensors  jetstream.JetStream
	epoch    string
	told     map[uint64]int // version by sequence number
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, folder: t.TempDir(), epoch: strings.Repeat("0", 32), told: map[uint64]int{}}
	for _, site := range []string{"", "eu"} {
		if _, err := hub.AddKey(b.folder, site); err != nil {
			t.Fatal(err)
		}
	}
	access, err := hub.ReadAccess(hub.AccessFile(b.folder))
	if err == nil {
		b.hub, err = hub.Start(hub.Options{
			Name: "hub", Listen: "127.0.0.1:0", Store: filepath.Join(b.folder, "hub"), Access: access,
			Limits: hub.DefaultLimits(),
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.hub.Stop)
	if err := b.hub.Declare(t.Context()); err != nil {
		t.Fatal(err)
	}
	connect := func(key, inbox string) *nats.Conn {
		c, err := link.Connect(link.Options{
			URLs: []string{b.hub.URL()}, Key: filepath.Join(b.folder, key), Inbox: message.Inbox(inbox),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	b.operator = connect("operator.key", "x")
	if b.sensors, err = jetstream.New(connect("site-eu.key", "eu")); err != nil {
		t.Fatal(err)
	}
	return b
}

// tell publishes a row of a version.
func (b *bench) tell(version int, seq uint64) {
	b.t.Helper()
	b.tellAs(version, seq, message.ID{Sensor: "s", Epoch: b.epoch, Seq: seq}.String())
	b.told[seq] = version
}

func (b *bench) tellAs(version int, seq uint64, id string) {
	b.t.Helper()
	s := versions(version + 1)[version]
	cells := s.Cells()
	for i := range cells {
		if c := &s.Columns[i]; c.Absent == export.Never || i == len(message.Schema(message.Flows).Columns) {
			cells[i].Set, cells[i].Bytes, cells[i].Uint = true, []byte("x"), seq
		}
	}
	m := nats.NewMsg(message.Subject(message.Flows, message.Place{Site: "eu", Sensor: "s"}))
	m.Header.Set(message.Header, id)
	m.Data = s.AppendRow(nil, cells)
	if _, err := b.sensors.PublishMsg(b.t.Context(), m, jetstream.WithRetryAttempts(100)); err != nil {
		b.t.Fatal(err)
	}
}

// collect runs a collector of a version until something is so. It returns what the collector said.
func (b *bench) collect(version int, o Options, until func(c *Collector, said string) bool) (*Collector, string) {
	b.t.Helper()
	o.Folder, o.Rows, o.Every = filepath.Join(b.folder, "tables"), max(o.Rows, 7), 100*time.Millisecond
	var lock sync.Mutex
	var said strings.Builder
	o.Notice = func(text string) {
		lock.Lock()
		defer lock.Unlock()
		fmt.Fprintln(&said, text)
	}
	text := func() string {
		lock.Lock()
		defer lock.Unlock()
		return said.String()
	}
	c, err := New(b.operator, o)
	if err != nil {
		b.t.Fatal(err)
	}
	c.schema = func(kind message.Kind) *export.Schema {
		if kind == message.Flows {
			return versions(version + 1)[version]
		}
		return message.Schema(kind)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for end := time.Now().Add(30 * time.Second); !until(c, text()); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) || len(ended) > 0 {
			b.t.Fatalf("the collector did not do what was expected: %d rows wait, and it said %s", b.waiting(), text())
		}
	}
	cancel()
	if err := <-ended; err != nil {
		b.t.Fatal(err)
	}
	return c, text()
}

// all is so when the hub has no rows, and the tables have those that the collector can read of the unread ones.
func (b *bench) all(unread uint64) func(*Collector, string) bool {
	return func(*Collector, string) bool {
		n, err := Unread(filepath.Join(b.folder, "tables"))
		return err == nil && n == unread && b.waiting() == 0
	}
}

// waiting returns how many rows the hub has.
func (b *bench) waiting() uint64 {
	js, err := jetstream.New(b.operator)
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := js.Stream(b.t.Context(), message.Stream(message.Flows, "eu"))
	if err != nil {
		b.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// files returns the files of a folder.
func (b *bench) files(folder string) []string {
	b.t.Helper()
	names, err := filepath.Glob(filepath.Join(b.folder, "tables", folder, "site=eu", "*.parquet"))
	if err != nil {
		b.t.Fatal(err)
	}
	return names
}

// check compares the rows of the tables with those that were told, of the versions that were readable. The others are
// unread.
func (b *bench) check(what string, readable ...int) {
	b.t.Helper()
	got, left := map[uint64]int{}, uint64(0)
	for _, name := range b.files("flows") {
		rows, err := parquet.ReadFile[struct {
			Seq uint64 `parquet:"seq"`
		}](name)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, r := range rows {
			got[r.Seq]++
		}
	}
	for seq, version := range b.told {
		want := 1
		if !slices.Contains(readable, version) {
			want = 0
			left++
		}
		if got[seq] != want {
			b.t.Errorf("%s: row %d of version %d is %d times in the tables, expected %d", what, seq, version, got[seq], want)
		}
	}
	if n, err := Unread(filepath.Join(b.folder, "tables")); err != nil || n != left {
		b.t.Errorf("%s: %d rows are unread (%v), expected %d", what, n, err, left)
	}
}

// TestOtherVersion: rows of versions that a collector does not know outlive it, and a collector that knows them puts
// each into the tables once.
func TestOtherVersion(t *testing.T) {
	b := newBench(t)
	room := Options{Unread: DefaultUnread}
	for seq := uint64(1); seq <= 60; seq++ {
		b.tell(int(seq)%3, seq)
	}
	c, said := b.collect(0, room, b.all(40))
	if c.Unread() != 40 || c.Refused() != 0 || c.Missing() != 0 || strings.Count(said, "are kept in") != 2 {
		t.Errorf("expected 40 rows of two versions kept, none refused, none missing, found %d, %d, %d: %s", c.Unread(),
			c.Refused(), c.Missing(), said)
	}
	b.check("first", 0)
	b.tellAs(2, 1, "an id of another version")
	for seq := uint64(61); seq <= 80; seq++ { // only rows of another version
		b.tell(2, seq)
	}
	if c, _ := b.collect(0, room, b.all(61)); c.Unread() != 21 || c.Rows()+c.Again() != 0 {
		t.Errorf("expected 21 rows kept and none again, found %d and %d", c.Unread(), c.Rows()+c.Again())
	}
	for round, want := range []uint64{21, 1} { // the second one finds those of the first in the tables
		b.tell(1, uint64(81+round))
		c, _ := b.collect(1, room, func(c *Collector, _ string) bool { return c.Rows() >= want && b.waiting() == 0 })
		if c.Missing() != 0 || c.Rows() != want || c.Unread() != 0 {
			t.Errorf("round %d: expected %d rows, none missing, none kept, found %d, %d, %d", round, want, c.Rows(), c.Missing(),
				c.Unread())
		}
	}
	if c, _ := b.collect(2, room, b.all(0)); c.Refused() != 1 {
		t.Errorf("expected that the message without an id is refused at last, found %d", c.Refused())
	}
	b.check("last version", 0, 1, 2)
	if left := b.files("unread/flows"); len(left) > 0 {
		t.Errorf("expected that no file is left whose rows are in the tables, found %q", left)
	}
}

// TestOnlyOthers: a collector finds its position where only rows that were unread tell it.
func TestOnlyOthers(t *testing.T) {
	b := newBench(t)
	room := Options{Unread: DefaultUnread}
	for seq := uint64(1); seq <= 5; seq++ {
		b.tell(1, seq)
	}
	b.collect(0, room, b.all(5))
	b.collect(1, room, b.all(0))
	b.tell(1, 6)
	if c, _ := b.collect(1, room, b.all(0)); c.Rows() != 1 || c.Again() != 0 {
		t.Errorf("expected one row more, found %d and %d again", c.Rows(), c.Again())
	}
	b.check("at the end", 1)
}

// TestUnreadFull: without room for them, rows stay at the hub, and none behind them is let go.
func TestUnreadFull(t *testing.T) {
	b := newBench(t)
	for seq := uint64(1); seq <= 40; seq++ {
		version := 0
		if seq > 10 && seq%2 == 0 {
			version = 1
		}
		b.tell(version, seq)
	}
	c, said := b.collect(0, Options{Unread: 6000}, func(_ *Collector, said string) bool {
		return strings.Contains(said, "no room is left")
	})
	if c.Rows() < 10 || b.waiting() == 0 || !strings.Contains(said, "--unread-size") {
		t.Errorf("expected rows in the tables and others at the hub, found %d and %d: %s", c.Rows(), b.waiting(), said)
	}
	b.collect(0, Options{Unread: DefaultUnread}, b.all(15))
	b.check("with room", 0)
	b.collect(1, Options{Unread: DefaultUnread}, b.all(0))
	b.check("next version", 0, 1)
}

// TestUnreadKilled leaves the files that a collector leaves that is killed, or whose tables were moved away.
func TestUnreadKilled(t *testing.T) {
	const rows = 20
	whole := func(c *Collector, _ string) bool { return c.Rows()+c.Unread()+c.Again() >= rows }
	for what, x := range map[string]struct {
		keep     bool
		change   func(b *bench)
		readable []int
	}{
		"the unread file is in place, that of the tables is not": {true, func(b *bench) {
			b.remove("flows")
		}, []int{1}},
		"and the hub has lost the first rows": {true, func(b *bench) {
			b.remove("flows")
			b.forget(6)
			for seq := uint64(2); seq < 6; seq += 2 {
				delete(b.told, seq) // they were in the tables only
			}
		}, []int{1}},
		"the same, and the next collector is killed after its first file": {true, func(b *bench) {
			b.remove("flows")
			b.collect(1, Options{Unread: DefaultUnread, Keep: true}, func(c *Collector, _ string) bool {
				return c.Rows()+c.Unread()+c.Again() >= 30
			})
			for _, name := range slices.Concat(b.files("flows"), b.files("unread/flows")) {
				if first, whole, _ := parseName(filepath.Base(name)); first > 1 && whole {
					if err := os.Remove(name); err != nil {
						t.Fatal(err)
					}
				}
			}
		}, []int{1}},
		"neither is in place": {true, func(b *bench) {
			b.remove("flows")
			b.remove("unread/flows")
		}, []int{1}},
		"the tables were moved away, and the hub has no rows": {false, func(b *bench) {
			b.remove("flows")
			for seq := uint64(2); seq <= rows; seq += 2 {
				delete(b.told, seq)
			}
		}, []int{1}},
		"the rows are in the tables, and still in the unread file": {false, func(b *bench) {
			path := b.files("unread/flows")[0]
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b.collect(1, Options{Unread: DefaultUnread}, b.all(0))
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}, []int{0, 1}},
	} {
		b := newBench(t)
		for seq := uint64(1); seq <= rows; seq++ {
			b.tell(int(seq)%2, seq)
		}
		b.collect(0, Options{Unread: DefaultUnread, Keep: x.keep, Rows: 100}, whole)
		x.change(b)
		left := uint64(0)
		for _, version := range b.told {
			if !slices.Contains(x.readable, version) {
				left++
			}
		}
		b.tell(1, rows+1)
		b.collect(1, Options{Unread: DefaultUnread}, b.all(left))
		b.check(what, x.readable...)
	}
}

func (b *bench) remove(folder string) {
	b.t.Helper()
	for _, name := range b.files(folder) {
		if err := os.Remove(name); err != nil {
			b.t.Fatal(err)
		}
	}
}

// forget makes the hub lose the rows before a number.
func (b *bench) forget(before uint64) {
	b.t.Helper()
	js, err := jetstream.New(b.operator)
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := js.Stream(b.t.Context(), message.Stream(message.Flows, "eu"))
	if err == nil {
		err = s.Purge(b.t.Context(), jetstream.WithPurgeSequence(before))
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// Package top shows a fleet: its sensors, what they found newly, and what the troubles of all sites have in common.
package top

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/ackscope/ackscope/cause"
	"github.com/ackscope/ackscope/contrib/fleet/fetch"
	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/machine"
)

// Bounds of what is kept. Whoever has a key of a site can make up names.
const (
	mostSensors  = 10_000
	mostFindings = 5_000
	mostFlows    = 20_000
)

// Sensor is a sensor as it last reported.
type Sensor struct {
	At     message.Place
	Seen   time.Time
	Report message.Report
}

// Finding is a finding as it was last told.
type Finding struct {
	fetch.Finding
	Severity string
	Message  string
}

// Fleet is what was told since the program began. Any goroutine may call its methods.
type Fleet struct {
	lock     sync.Mutex
	sensors  map[message.Place]*Sensor
	findings map[string]*Finding
	order    []string // of the findings, as they came first
	flows    map[string]flow
	flowIDs  []string
	refused  uint64
	other    uint64
	unread   uint64

	decoders map[message.Kind]*message.Decoder
	cells    map[message.Kind][]export.Cell
}

// flow is a flow that ended.
type flow struct {
	a, b        netip.AddrPort
	first, last machine.Instant
	packets     [2]float64
	loss        [2]float64 // negative if unknown
}

// New returns a fleet of which nothing is known.
func New() *Fleet {
	f := &Fleet{
		sensors: map[message.Place]*Sensor{}, findings: map[string]*Finding{}, flows: map[string]flow{},
		decoders: map[message.Kind]*message.Decoder{}, cells: map[message.Kind][]export.Cell{},
	}
	for _, kind := range message.Stored {
		f.decoders[kind], f.cells[kind] = message.NewDecoder(message.Schema(kind)), message.Schema(kind).Cells()
	}
	return f
}

// Watch takes what all sensors tell from now on, until the returned function is called.
func (f *Fleet) Watch(hub *nats.Conn) (stop func(), err error) {
	var list []*nats.Subscription
	stop = func() {
		for _, s := range list {
			_ = s.Unsubscribe()
		}
	}
	for _, kind := range []message.Kind{message.Health, message.Flows, message.Findings} {
		s, err := hub.Subscribe(message.Subjects(kind, ""), func(m *nats.Msg) { f.Take(m.Subject, m.Data, time.Now()) })
		if err != nil {
			stop()
			return nil, err
		}
		list = append(list, s)
	}
	return stop, nil
}

// Take takes a message. One that no sensor sends is counted.
func (f *Fleet) Take(subject string, body []byte, now time.Time) {
	f.lock.Lock()
	defer f.lock.Unlock()
	kind, at, err := message.ParseSubject(subject)
	if err == nil {
		switch kind {
		case message.Health:
			err = f.health(at, body, now)
		case message.Flows:
			err = f.flow(body)
		case message.Findings:
			err = f.finding(at, body)
		}
	}
	switch {
	case errors.Is(err, errOther):
		f.other++
	case err != nil:
		f.refused++
	}
}

// errOther says that a row is of another version: of a sensor that was updated sooner or later than this program.
var errOther = errors.New("a row of another version")

func (f *Fleet) health(at message.Place, body []byte, now time.Time) error {
	r, err := message.ParseReport(body)
	if err != nil {
		return err
	}
	if f.sensors[at] == nil && len(f.sensors) >= mostSensors {
		return fmt.Errorf("expected at most %d sensors, found more", mostSensors)
	}
	f.sensors[at] = &Sensor{At: at, Seen: now, Report: *r}
	return nil
}

// row is a decoded row with its columns by name.
type row struct {
	schema *export.Schema
	cells  []export.Cell
}

func (r row) cell(name string) *export.Cell {
	if i := message.Column(r.schema, name); i >= 0 {
		return &r.cells[i]
	}
	return &export.Cell{}
}

func (r row) text(name string) string                  { return string(r.cell(name).Bytes) }
func (r row) time(name string) machine.Instant         { return machine.Instant(r.cell(name).Int) }
func (r row) addr(name string) (netip.AddrPort, error) { return netip.ParseAddrPort(r.text(name)) }

func (f *Fleet) decode(kind message.Kind, body []byte) (row, error) {
	r := row{message.Schema(kind), f.cells[kind]}
	if _, other := f.decoders[kind].Other(body); other {
		return r, errOther
	}
	return r, f.decoders[kind].Decode(body, r.cells)
}

func (f *Fleet) finding(at message.Place, body []byte) error {
	r, err := f.decode(message.Findings, body)
	if err != nil {
		return err
	}
	x := &Finding{Severity: r.text("severity"), Message: r.text("message")}
	x.At, x.UID, x.Rule, x.Side = at, r.text("uid"), r.text("rule"), r.text("side")
	x.Count, x.Provisional = r.cell("count").Uint, r.cell("provisional").Set
	x.Begun, x.First, x.Last = r.time("begun"), r.time("time"), r.time("last_time")
	if x.A, err = r.addr("a"); err != nil {
		return err
	}
	if x.B, err = r.addr("b"); err != nil {
		return err
	}
	if old, ok := f.flows[x.UID]; ok {
		x.Ended = old.last
	}
	f.put(x)
	return nil
}

// put keeps a finding, and forgets the oldest beyond the bound.
func (f *Fleet) put(x *Finding) {
	key := x.String()
	if f.findings[key] == nil {
		f.order = append(f.order, key)
	}
	f.findings[key] = x
	if len(f.order) > mostFindings {
		delete(f.findings, f.order[0])
		f.order = f.order[1:]
	}
}

func (f *Fleet) flow(body []byte) error {
	r, err := f.decode(message.Flows, body)
	if err != nil {
		return err
	}
	x := flow{first: r.time("time"), last: r.time("last_time"), loss: [2]float64{-1, -1}}
	if x.a, err = r.addr("a"); err != nil {
		return err
	}
	if x.b, err = r.addr("b"); err != nil {
		return err
	}
	for i, side := range [2]string{"a", "b"} {
		x.packets[i] = float64(r.cell("packets_" + side).Uint)
		if c := r.cell("path_loss_" + side); c.Set && c.Float >= 0 && c.Float <= 1 {
			x.loss[i] = c.Float
		}
	}
	uid := r.text("uid")
	if _, ok := f.flows[uid]; !ok {
		f.flowIDs = append(f.flowIDs, uid)
	}
	f.flows[uid] = x
	if len(f.flowIDs) > mostFlows {
		delete(f.flows, f.flowIDs[0])
		f.flowIDs = f.flowIDs[1:]
	}
	return nil
}

// Preload adds findings of tables, as they were before the program began.
func (f *Fleet) Preload(list []*fetch.Finding) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, x := range slices.Backward(list) { // the newest comes first
		if f.findings[x.String()] == nil {
			f.put(&Finding{Finding: *x})
		}
	}
}

// SetUnread notes how many rows of other versions a collector has kept in tables.
func (f *Fleet) SetUnread(rows uint64) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.unread = rows
}

// Snapshot is the fleet at one moment.
type Snapshot struct {
	Sensors  []Sensor
	Findings []Finding // the newest first
	Flows    int       // that ended
	Refused  uint64    // messages that no sensor sends
	Other    uint64    // rows of another version, which cannot be shown
	Unread   uint64    // such rows that a collector has kept in the tables
	Causes   []string  // what the losses of all sites have in common; empty without enough flows
}

// Snapshot returns the fleet as it is now.
func (f *Fleet) Snapshot() *Snapshot {
	f.lock.Lock()
	defer f.lock.Unlock()
	s := &Snapshot{Flows: len(f.flows), Refused: f.refused, Other: f.other, Unread: f.unread, Causes: f.causes()}
	for _, x := range f.sensors {
		s.Sensors = append(s.Sensors, *x)
	}
	slices.SortFunc(s.Sensors, func(x, y Sensor) int {
		return cmp.Or(cmp.Compare(x.At.Site, y.At.Site), cmp.Compare(x.At.Sensor, y.At.Sensor))
	})
	for _, x := range f.findings {
		s.Findings = append(s.Findings, *x)
	}
	slices.SortFunc(s.Findings, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(y.Last, x.Last), cmp.Compare(x.String(), y.String()))
	})
	return s
}

// lossLeast is how many packets a direction needs, as in package cause.
const lossLeast = 64

// causes compares the losses of all flows, of whatever site. A network of players that loses packets at every site
// shows here, and at no site alone.
func (f *Fleet) causes() []string {
	servers := map[netip.AddrPort]int{}
	for _, x := range f.flows {
		servers[x.a]++
		servers[x.b]++
	}
	var list []cause.Flow
	for i, uid := range f.flowIDs {
		x := f.flows[uid]
		server, client, down := x.b, x.a, 1
		if servers[x.a] > servers[x.b] {
			server, client, down = x.a, x.b, 0
		}
		c := cause.Flow{ID: i + 1, Client: client.Addr(), First: x.first, Last: x.last}
		if servers[x.a] != servers[x.b] {
			c.Server = server
		}
		for way, side := range map[cause.Way]int{cause.Down: down, cause.Up: 1 - down} {
			if x.loss[side] >= 0 && x.packets[side] >= lossLeast {
				c.Sent[way], c.Lost[way] = x.packets[side], x.packets[side]*x.loss[side]
			}
		}
		list = append(list, c)
	}
	return cause.Compare(list, false).Sentences()
}

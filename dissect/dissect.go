// Package dissect says what a protocol is to ackscope: a descriptor with its
// fields, its classifier, its dissector and its tracker. Protocols live in the
// packages below; cmd/ackscope/registry.go lists them.
//
// Ring 2 of the house: dissectors know fields, never state. They are pure and
// can be run again on any packet at any time.
package dissect

import (
	"errors"
	"net/netip"

	"github.com/ackscope/ackscope/machine"
)

// FieldKind says how a field's value reads.
type FieldKind uint8

const (
	KindUint  FieldKind = iota // Field.Uint
	KindInt                    // Field.Uint as two's complement int64
	KindBool                   // Field.Uint 0 or 1
	KindFloat                  // Field.Uint as IEEE 754 bits of a float64
	KindBytes                  // Field.Bytes
	KindText                   // Field.Bytes as UTF-8
	KindGroup                  // no value: a heading over the fields below it
	KindAddr                   // Field.Bytes as an IP address: 4 or 16 bytes
)

// Content says whose a field's value is: what must not leave with a capture that
// is given to others.
type Content uint8

const (
	ContentNone Content = iota // the protocol's own
	ContentData                // the application's bytes, whatever they mean
	ContentAddr                // an IP address
	ContentPort                // a port
	// The next three are the protocol's own too: counters, of which those of one flow
	// lie near each other. A datagram of another protocol is told by them.
	ContentSequence // counts what its sender sends
	ContentAck      // names what its sender has of its peer
	ContentNumber   // one or the other
	// ContentFiller are zeros, as the protocol has it: what is not zero means something else.
	ContentFiller
)

// FieldSpec documents one field. Filters, exports, help and shell completion
// read it; its address identifies the field.
type FieldSpec struct {
	Name  string // as in filters: "gaffer.sequence"
	Label string // as in the decode tree: "Sequence"
	Kind  FieldKind
	Hex   bool   // shown in hexadecimal
	Unit  string // "bytes", "ms"; empty for none
	Doc   string // one sentence
	Enum  map[uint64]string
	// Content tells what of the protocol's own fields is not the protocol's.
	Content Content
}

// Field is one decoded field of a packet. Bit positions count from the first
// bit of the datagram, low bit of a byte first.
type Field struct {
	Spec  *FieldSpec
	Depth uint8  // 0 for the protocol's own line
	Bit   uint32 // where it begins
	Bits  uint32 // how wide it is; 0 for one that is generated, not on the wire
	Uint  uint64
	Bytes []byte // aliases the datagram or a reassembly: valid until the next Dissect
	Note  string // said beside the value; most fields have none
}

// Dissection is one packet taken apart. The caller owns it and reuses it.
type Dissection struct {
	Fields  []Field
	Problem error // the first malformed field (*wire.ParseError); nil for a whole packet
	Snapped bool  // a snap length cut the datagram before its last field

	scratch []byte
}

// Reset empties d and keeps its memory.
func (d *Dissection) Reset() {
	d.Fields, d.Problem, d.Snapped, d.scratch = d.Fields[:0], nil, false, d.scratch[:0]
}

// ErrEncrypted says that what a datagram carries cannot be read: there is no key.
var ErrEncrypted = errors.New("encrypted, and no key opens it")

// Unaligned returns the bytes of b from a bit on, which need not be the first of
// a byte: put together to whole ones in d's memory where it is not. They are
// valid until the next Reset.
func (d *Dissection) Unaligned(b []byte, bit int) []byte {
	if bit%8 == 0 {
		return b[min(bit/8, len(b)):]
	}
	start := len(d.scratch)
	d.scratch = AppendUnaligned(d.scratch, b, bit)
	return d.scratch[start:len(d.scratch):len(d.scratch)]
}

// AppendUnaligned appends the bits of b from a bit on to dst as whole bytes, low
// bit first; the last one is filled with zeros.
func AppendUnaligned(dst, b []byte, bit int) []byte {
	shift := bit % 8
	for i := bit / 8; i < len(b); i++ {
		v := b[i] >> shift
		if i+1 < len(b) {
			v |= b[i+1] << (8 - shift)
		}
		dst = append(dst, v)
	}
	return dst
}

// Add appends a field.
func (d *Dissection) Add(f Field) { d.Fields = append(d.Fields, f) }

// Context is what the dissector of a packet knows of its flow.
type Context struct {
	Config *Config
	From   machine.Side
	Pieces Pieces // of Edit; nil for none
}

// Pieces changes packets that are sent in several datagrams. A first reading of the
// flow learns them; with it in their context, Edit then gives each datagram the part
// of the changed packet that it carries. Datagrams of packets that never were whole
// are changed as bytes.
type Pieces interface {
	// Learn takes the next datagram of the flow. Where it completes a packet, change
	// is called with the packet, in the clear, as Protocol.Edit calls it.
	Learn(ctx Context, dg *machine.Datagram, change func(b []byte, d *Dissection, seal func([]byte)))
}

// Config is how one flow of a protocol is to be read: found by the classifier,
// or given by the user (`-d udp.port==7777,gaffer:profile`).
type Config struct {
	Dialect string // as `flows` shows it
	Profile any    // the protocol's own settings (*wire.Profile for Gaffer)
	Stream  bool   // its messages come over TCP
	OneHost bool   // both ends have the same address: on a loopback device, mostly
	// Ends are the addresses of A and B, once they are known: with Facts.
	Ends  [2]netip.AddrPort
	Facts machine.Facts
	Ports []uint16 // UDP ports whose flows are read so with no evidence asked: a user's profile may name some
}

// Verdict is what a classifier makes of a flow.
type Verdict struct {
	Config     *Config
	Bits       float64 // evidence against chance, in bits: comparable across protocols
	Confidence float64 // 0..1, for people
	Reason     string  // what the evidence is, in words; also why not, where Config is nil
	Settled    bool    // more packets of the flow would not change it
}

// Classifier weighs, datagram by datagram, whether a flow is of its protocol
// and in which dialect. It sees both directions and keeps no bytes.
type Classifier interface {
	// Reset forgets the flow, for another one, and keeps the memory.
	Reset()
	Feed(d *machine.Datagram)
	// Sure reports whether the verdict has a Config and is settled. It is asked
	// often, so it allocates nothing and words no reason.
	Sure() bool
	Verdict() Verdict
}

// FramedClassifier is a Classifier to which the framing of a stream is evidence.
type FramedClassifier interface {
	// Framed tells, after Reset, how many bytes stand in front of each message:
	// Framing.Prefix.
	Framed(prefix int)
}

// Assembly joins the pieces of packets that were sent in several datagrams, for
// display. Its memory is bounded.
type Assembly interface {
	// Add takes a datagram of the flow, and gives the packet that it completes, to
	// be dissected as any; nil for none. The packet's bytes are the assembly's,
	// and valid until the next Add.
	Add(d *machine.Datagram) *machine.Datagram
}

// Profile is one named way to read a protocol: built in, or from a user's file.
type Profile struct {
	Name   string
	Doc    string // one sentence
	Config *Config
	Fields []*FieldSpec // that its schema adds to the protocol's own
}

// Framing is one way in which a protocol cuts a TCP stream into messages: a
// length in front of each, which does not count itself.
type Framing struct {
	Name      string
	Prefix    int  // its size in bytes: 2 or 4
	BigEndian bool // high byte first
	Max       int  // the longest message that is believed, in bytes
	Usual     int  // the longest that the protocol writes by default, in bytes

	// Weigh weighs a message of which b was captured and that is length bytes
	// long: the evidence in bits that it is one of the protocol, negative where
	// it cannot be one.
	Weigh func(b []byte, length int) float64
}

// Values are those of a message's body, as JSON: an object by their names, and a
// list in their order.
type Values interface {
	MarshalJSON() ([]byte, error)
	MarshalList() ([]byte, error)
}

// Protocol describes a protocol. It is a value, not an interface: it can be
// listed, documented and tested.
type Protocol struct {
	Name  string // "gaffer"
	Title string // "Gaffer (reliable ordered messages)"
	// Fields lists every field that Dissect may add, but those of user schemas.
	Fields []*FieldSpec
	// Rules lists every rule that the tracker may report.
	Rules []*machine.Rule
	// Profiles lists the built-in ones.
	Profiles []Profile
	// NewProfile gives a pointer to the settings with the named built-in profile
	// as the start, for a file reader to fill in (yaml tags), and DoneProfile checks them.
	NewProfile  func(base string) (any, error)
	DoneProfile func(settings any) (*Config, error)
	// Extend gives the protocol with what a user's files add; nil where they add
	// nothing to it.
	Extend func(Additions) (*Protocol, error)
	// SettingDocs says in one line what each setting of a profile file means, by
	// its path in the file: "fragment_size", "messages.form".
	SettingDocs map[string]string
	// EventNames gives the words of the protocol's own event kinds.
	EventNames map[machine.EventKind]string
	// EventNote says what the number of one of them stands for, such as the name of
	// a reason; empty, as nil, for nothing.
	EventNote func(c *Config, e *machine.Event) string

	// Framings are how it stands in TCP streams; none for a protocol of datagrams
	// only. Each message is then a machine.Datagram of its own.
	Framings []Framing

	Classify func() Classifier
	// Dissect takes a datagram apart. It fills d in place; malformed bytes are
	// d.Problem, and what could be read before them stands in d.Fields.
	Dissect func(ctx Context, dg *machine.Datagram, d *Dissection)
	// Account says what the bits of a datagram are for, from its dissection.
	Account func(ctx Context, dg *machine.Datagram, d *Dissection, b *Bill)
	// Edit gives a datagram, of the same length, in which change has changed what its
	// fields show: bytes where the fields' bits are, in the clear. What the protocol
	// adds for integrity is right again; seal does that to bytes that are to be looked
	// at in between, and is nil where they are not as they travel. nil where the bytes
	// can be changed as they are. It fails with ErrEncrypted where fields cannot be read for want of a key.
	Edit func(ctx Context, dg *machine.Datagram, d *Dissection, change func(b []byte, d *Dissection, seal func([]byte))) (
		[]byte, error)
	// NewPieces gives what Edit changes packets by that are sent in several datagrams;
	// nil, or giving nil, where there are none.
	NewPieces func(*Config) Pieces
	// Info writes the packet's one line for lists, such as "seq 5 ack 9 ack_bits 0x1f, 120 bytes".
	Info func(ctx Context, dg *machine.Datagram, to []byte) []byte
	// Message gives the name of a message's type and the values of its body, as far
	// as a schema reads them; nil where the protocol carries no messages.
	Message    func(c *Config, m *machine.Message) (name string, values Values)
	NewTracker func(*Config) machine.Tracker // nil for a protocol that is dissected only
	// NewScope makes what is kept of one endpoint over all its flows of datagrams;
	// nil for a protocol whose flows have nothing to do with each other.
	NewScope func(*Config) machine.Scope
	// Behaviours lists the named ways in which implementations behave; none where
	// the protocol has no reference to hold a capture against.
	Behaviours []machine.Behaviour
	// BehavioursOf names those of them that the flow's sender s can be of, the
	// expected one first; none where its packets cannot be read. What s writes
	// suggests the first open ones alike.
	BehavioursOf func(c *Config, s machine.Side) (names []string, open int)
	// NewJudge holds a flow against references of the named behaviours, one for
	// each side. c.Facts must be those of an earlier run.
	NewJudge func(c *Config, behaviours [2]string) (machine.Judge, error)
	// RestsOnAbsence reports whether a divergence that a Judge found rests on a
	// packet that did not pass the tap: a capture that lacks it shows the same.
	RestsOnAbsence func(d *machine.Divergence) bool
	// NewStage runs a flow again under other settings; an error says why it cannot
	// be. nil where the protocol has none. c.Facts must be those of an earlier run.
	NewStage func(c *Config) (machine.Stage, error)
	// Parameters are what a Stage of the protocol can be asked to set otherwise; that
	// of one flow may have fewer.
	Parameters []machine.Parameter
	// NewAssembly joins what the protocol splits; nil, or giving nil, where it
	// splits nothing.
	NewAssembly func(*Config) Assembly
}

// Registry is the immutable list of protocols, passed down from main.
type Registry struct{ protocols []*Protocol }

// NewRegistry lists the protocols in the order in which they are tried and shown.
func NewRegistry(p ...*Protocol) *Registry { return &Registry{protocols: p} }

// Protocols returns them in order; the caller must not change the slice.
func (r *Registry) Protocols() []*Protocol { return r.protocols }

// Lookup finds a protocol by name.
func (r *Registry) Lookup(name string) (*Protocol, bool) {
	for _, p := range r.protocols {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

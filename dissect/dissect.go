// Package dissect defines what a protocol is to ackscope: a descriptor with its
// fields, its classifier, its dissector and its tracker. The protocols are the
// packages below; package protocols lists them, and cmd/ackscope/registry.go.
//
// For example, Gaffer's descriptor lists the field "gaffer.sequence". Its
// dissector adds a [Field] with the value 17 at bit 8 to a [Dissection].
//
// A dissector knows fields, and keeps no state: it can run on any packet at any
// time, any number of times.
package dissect

import (
	"errors"
	"net/netip"

	"github.com/ackscope/ackscope/machine"
)

// FieldKind is the type of a field's value.
type FieldKind uint8

const (
	KindUint  FieldKind = iota // Field.Uint
	KindInt                    // Field.Uint as two's complement int64
	KindBool                   // Field.Uint 0 or 1
	KindFloat                  // Field.Uint as IEEE 754 bits of a float64
	KindBytes                  // Field.Bytes
	KindText                   // Field.Bytes as UTF-8
	KindGroup                  // no value: a heading for the fields below it
	KindAddr                   // Field.Bytes as an IP address: 4 or 16 bytes
)

// Content says what a field's value belongs to. It decides what to remove from
// a capture before it is given to others.
type Content uint8

const (
	ContentNone Content = iota // nothing to remove: the protocol's own value
	ContentData                // the application's bytes, whatever they mean
	ContentAddr                // an IP address
	ContentPort                // a port
	// The next three are the protocol's own too: counters. Within a flow, their
	// values are close to each other, which distinguishes foreign datagrams.
	ContentSequence // counts the packets that its sender sends
	ContentAck      // acknowledges packets of the peer
	ContentNumber   // either of the two
	// ContentFiller must be zeros; a value that is not zero means something
	// else.
	ContentFiller
)

// FieldSpec documents one field, for filters, exports, help and shell
// completion. The address of a FieldSpec identifies the field.
type FieldSpec struct {
	Name  string // as in filters: "gaffer.sequence"
	Label string // as in the decode tree: "Sequence"
	Kind  FieldKind
	Hex   bool   // shown in hexadecimal
	Unit  string // "bytes", "ms"; empty if it has none
	Doc   string // one sentence
	Enum  map[uint64]string
	// Content says what the value belongs to, when not to the protocol.
	Content Content
}

// Field is one decoded field of a packet. Bit positions count from the start of
// the datagram, low bit of a byte first.
type Field struct {
	Spec  *FieldSpec
	Depth uint8  // 0 for the protocol's own line
	Bit   uint32 // its first bit
	Bits  uint32 // its width; 0 for a generated field, which is not on the wire
	Uint  uint64
	Bytes []byte // aliases the datagram or a reassembly; valid until the next Dissect
	Note  string // shown beside the value; empty for most fields
}

// Dissection is the decoded fields of one packet. The caller owns it and reuses
// it.
type Dissection struct {
	Fields  []Field
	Problem error // the first malformed field (*wire.ParseError); nil if there is none
	Snapped bool  // a snap length cut the datagram before its last field
	// Places says that only places and numbers of fields are read. Bytes that are not on the
	// boundary of a byte are then left out.
	Places bool

	scratch []byte
}

// Reset empties d. It keeps its memory for reuse, and Places.
func (d *Dissection) Reset() {
	d.Fields, d.Problem, d.Snapped, d.scratch = d.Fields[:0], nil, false, d.scratch[:0]
}

// ErrEncrypted means that the contents of a datagram cannot be read without a
// key.
var ErrEncrypted = errors.New("encrypted, and no key opens it")

// Unaligned returns the bytes of b from a bit on. If the bit is not on a byte
// boundary, it shifts them into d's memory. They are valid until the next
// Reset.
func (d *Dissection) Unaligned(b []byte, bit int) []byte {
	if bit%8 == 0 {
		return b[min(bit/8, len(b)):]
	}
	if d.Places {
		return nil
	}
	start := len(d.scratch)
	d.scratch = AppendUnaligned(d.scratch, b, bit)
	return d.scratch[start:len(d.scratch):len(d.scratch)]
}

// AppendUnaligned appends the bits of b from a bit on to dst as whole bytes,
// low bit first. It fills the last byte with zeros.
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

// Context is what a dissector knows of a packet's flow.
type Context struct {
	Config *Config
	From   machine.Side
	Pieces Pieces // for Edit; nil if there are none
}

// Pieces changes packets that travel in several datagrams. A first run over the
// flow learns them. With Pieces in its context, Edit then returns each datagram
// with its part of the changed packet. Packets that were never complete change
// byte by byte.
type Pieces interface {
	// Learn takes the next datagram of the flow. When it completes a packet,
	// Learn calls change with the decrypted packet, as Protocol.Edit does.
	Learn(ctx Context, dg *machine.Datagram, change func(b []byte, d *Dissection, seal func([]byte)))
}

// Config says how to read one flow of a protocol. The classifier finds it, or
// the user gives it (`-d udp.port==7777,gaffer:profile`).
type Config struct {
	Dialect string // as `flows` shows it
	Profile any    // the protocol's own settings (*wire.Profile for Gaffer)
	Stream  bool   // its messages travel over TCP
	OneHost bool   // both ends have the same address, as on a loopback device
	// Ends are the addresses of A and B. Like Facts, they are known after a
	// run.
	Ends  [2]netip.AddrPort
	Facts machine.Facts
	Ports []uint16 // UDP ports whose flows are read so without evidence; a user's profile may name some
}

// Portable writes what a run learned of a flow for another process of the same build, and reads it.
// That is Config.Profile and Config.Facts.Settings: only the protocol knows their types. It fails
// where they hold what the other process cannot have, such as a user's schema.
type Portable struct {
	Write func(*Config) ([]byte, error)
	Read  func(*Config, []byte) error
}

// Verdict is a classifier's result for a flow.
type Verdict struct {
	Config     *Config
	Bits       float64 // evidence against chance, in bits: comparable across protocols
	Confidence float64 // 0..1, for people
	Reason     string  // the evidence as a sentence; when Config is nil, why there is none
	Settled    bool    // more packets of the flow would not change the result
}

// Classifier weighs whether a flow is of its protocol and in which dialect, one
// datagram at a time. It sees both directions and keeps no bytes.
type Classifier interface {
	// Reset prepares for another flow and keeps the memory.
	Reset()
	Feed(d *machine.Datagram)
	// Sure reports whether the verdict has a Config and is settled. Callers ask
	// often, so it allocates nothing and formats no reason.
	Sure() bool
	Verdict() Verdict
}

// LateClassifier is a Classifier that needs some datagrams to be sure. Callers need not feed it where
// they have fewer, and only ask whether it is sure.
type LateClassifier interface {
	// SureFrom returns the least number of datagrams after which Sure can be true.
	SureFrom() int
}

// FramedClassifier is a Classifier that uses the framing of a stream as
// evidence.
type FramedClassifier interface {
	// Framed sets, after Reset, how many bytes precede each message:
	// Framing.Prefix.
	Framed(prefix int)
}

// Assembly joins the pieces of packets that travel in several datagrams, for
// display. Its memory is bounded.
type Assembly interface {
	// Add takes a datagram of the flow. It returns the packet that the datagram
	// completes, ready to dissect, or nil. The assembly owns the packet's
	// bytes, which are valid until the next Add.
	Add(d *machine.Datagram) *machine.Datagram
}

// Profile is one named way to read a protocol: built in, or from a user's file.
type Profile struct {
	Name   string
	Doc    string // one sentence
	Config *Config
	Fields []*FieldSpec // those that its schema adds to the protocol's own
}

// Framing is one way in which a protocol divides a TCP stream into messages. A
// length precedes each message; it does not count itself.
type Framing struct {
	Name      string
	Prefix    int  // size of the length in bytes: 2 or 4
	BigEndian bool // high byte first
	Max       int  // the longest message that is accepted, in bytes
	Usual     int  // the longest message that the protocol writes by default, in bytes

	// Weigh returns the evidence, in bits, that a message is of the protocol.
	// Its captured part is b, and its full length in bytes is length. The
	// result is negative when the message cannot be of the protocol.
	Weigh func(b []byte, length int) float64
}

// Values are the values of a message's body as JSON: an object by name, or a
// list in order.
type Values interface {
	MarshalJSON() ([]byte, error)
	MarshalList() ([]byte, error)
}

// Protocol describes a protocol. It is a value, not an interface: callers can
// list, document and test it.
type Protocol struct {
	Name  string // "gaffer"
	Title string // "Gaffer (reliable ordered messages)"
	// Fields lists every field that Dissect may add, except those of user
	// schemas.
	Fields []*FieldSpec
	// Rules lists every rule whose finding the tracker may report.
	Rules []*machine.Rule
	// Profiles lists the built-in profiles.
	Profiles []Profile
	// NewProfile returns a pointer to settings that a file reader fills in
	// (yaml tags). They start as the named built-in profile. DoneProfile checks
	// them.
	NewProfile  func(base string) (any, error)
	DoneProfile func(settings any) (*Config, error)
	// Extend returns the protocol with what a user's files add. It is nil when
	// they cannot add anything.
	Extend func(Additions) (*Protocol, error)
	// SettingDocs documents each setting of a profile file in one line, by its
	// path in the file: "fragment_size", "messages.form".
	SettingDocs map[string]string
	// EventNames are the words for the protocol's own event kinds.
	EventNames map[machine.EventKind]string
	// EventNote explains the number in one of these events, such as by the name
	// of a reason. It returns "" when there is nothing to explain. It may be
	// nil.
	EventNote func(c *Config, e *machine.Event) string

	// Framings are the ways to find its messages in TCP streams. Each message
	// is then a machine.Datagram of its own. A protocol of datagrams only has
	// none.
	Framings []Framing

	Classify func() Classifier
	// Dissect decodes a datagram into d. For malformed bytes it sets d.Problem,
	// and d.Fields holds the fields before them.
	Dissect func(ctx Context, dg *machine.Datagram, d *Dissection)
	// Account fills b with what the bits of a datagram are for. It dissects the datagram into d,
	// which is empty, if it needs to.
	Account func(ctx Context, dg *machine.Datagram, d *Dissection, b *Bill)
	// Edit returns a changed copy of a datagram, of the same length. It calls
	// change with the decrypted bytes and their fields. change sets the bytes
	// that hold the fields' bits. Edit then repairs checksums and encryption.
	//
	// seal repairs bytes that are read in between; it is nil when they do not
	// travel in this form. Edit itself is nil when the bytes of a datagram can
	// be changed directly. It returns ErrEncrypted when fields cannot be read
	// without a key.
	Edit func(ctx Context, dg *machine.Datagram, d *Dissection, change func(b []byte, d *Dissection, seal func([]byte))) (
		[]byte, error)
	// NewPieces returns the Pieces of a flow, or nil when the flow has none. It
	// may be nil.
	NewPieces func(*Config) Pieces
	// Info appends one line for lists, such as "seq 5 ack 9 ack_bits 0x1f, 120
	// bytes".
	Info func(ctx Context, dg *machine.Datagram, to []byte) []byte
	// Message returns the name of a message's type, and the values of its body,
	// as far as a schema describes them. It is nil when the protocol carries no
	// messages.
	Message func(c *Config, m *machine.Message) (name string, values Values)
	// Sealed says why the contents of a flow cannot be read, such as "encrypted:
	// give --keys". It returns "" if they can. It may be nil.
	Sealed func(c *Config) string
	// NoMessages says why a flow shows no messages although its contents can be
	// read. It returns "" if it can show some. It may be nil.
	NoMessages func(c *Config) string
	NewTracker func(*Config) machine.Tracker // nil when ackscope only dissects the protocol
	// Portable is nil for a protocol whose flows one process only can learn of.
	Portable *Portable
	// NewDeferred is NewTracker for a caller that reads no effects before the end of the flow. Such
	// a tracker may process the first datagrams later, and take less memory until then. It keeps
	// the Config, which must not change any more. It may be nil.
	NewDeferred func(*Config) machine.Tracker
	// Resends says that the tracker reports what is sent again, by machine.EventResent.
	Resends bool
	// Review takes what a run learned of a flow that was read by c. If the run
	// shows that another profile is right, Review returns that profile's
	// configuration and the evidence as a phrase. Otherwise it returns nil. It
	// may settle facts.Doubtful, and add a phrase of advice. It is nil when a
	// flow's first datagrams always tell the profiles apart.
	Review func(c *Config, facts *machine.Facts) (better *Config, phrase string)
	// NewScope returns what is kept of one endpoint over all its flows of
	// datagrams. It is nil when a protocol's flows are independent.
	NewScope func(*Config) machine.Scope
	// Behaviours lists the named ways in which implementations behave. It is
	// empty when the protocol has no reference to compare a capture with.
	Behaviours []machine.Behaviour
	// BehavioursOf returns the behaviours that the flow's side s can have, the
	// expected one first. The packets of s suggest the first open behaviours
	// equally. It returns none when the packets cannot be read.
	BehavioursOf func(c *Config, s machine.Side) (names []string, open int)
	// Versions returns which implementations the flow's side s can be. learned is
	// what a run over the flow found out.
	Versions func(c *Config, learned *machine.Facts, s machine.Side) Versions
	// NewJudge returns a judge of a flow, with references of the named
	// behaviours, one for each side. c.Facts must come from an earlier run.
	NewJudge func(c *Config, behaviours [2]string) (machine.Judge, error)
	// DivergenceRules lists every rule whose divergence a Judge of the protocol
	// may find.
	DivergenceRules []*machine.Rule
	// NewStage returns the stage on which a flow runs again under other
	// settings. Its error says why the flow cannot. It is nil when the protocol
	// has no stage. c.Facts must come from an earlier run.
	NewStage func(c *Config) (machine.Stage, error)
	// Parameters are the settings that a Stage of the protocol can change. A
	// single flow may have fewer of them.
	Parameters []machine.Parameter
	// NewAssembly returns what joins packets that the protocol splits. It may
	// be nil, or return nil, when nothing is split.
	NewAssembly func(*Config) Assembly
}

// Registry is the immutable list of protocols. The main package passes it down.
type Registry struct{ protocols []*Protocol }

// NewRegistry returns a registry. Its order is the order of trial and of
// display.
func NewRegistry(p ...*Protocol) *Registry { return &Registry{protocols: p} }

// Protocols returns the protocols in order. The caller must not change the
// slice.
func (r *Registry) Protocols() []*Protocol { return r.protocols }

// Lookup returns the protocol with a name. It returns false when there is none.
func (r *Registry) Lookup(name string) (*Protocol, bool) {
	for _, p := range r.protocols {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

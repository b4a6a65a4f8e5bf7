package gaffer

import (
	"fmt"
	"strings"
)

// Form says how the header is written.
type Form uint8

const (
	FormFixed    Form = iota // the fields that Header lists, one after the other
	FormReliable             // reliable's 4 to 9 bytes, the first of which is a prefix
	FormNetcode              // netcode 1.02: encrypted
)

// ByteOrder is the byte order of the fields of a fixed header.
type ByteOrder uint8

const (
	LittleEndian ByteOrder = iota
	BigEndian
)

// Prefix is a part that precedes the header.
type Prefix uint8

const (
	PrefixZero  Prefix = iota // one zero byte
	PrefixID                  // the protocol id, 4 bytes in the header's byte order
	PrefixCRC32               // CRC-32, little-endian, over the protocol id and the datagram from here on
)

// FieldName names a field of a fixed header.
type FieldName uint8

const (
	FieldSequence FieldName = iota
	FieldAck
	FieldAckBits
)

// AckBase says which packet bit n of ack_bits means.
type AckBase uint8

const (
	AckMinusN         AckBase = iota // ack-n: bit 0 is ack itself
	AckMinusNMinusOne                // ack-n-1: ack itself is implied
)

// FragmentForm says how packets are split.
type FragmentForm uint8

const (
	FragmentsNone FragmentForm = iota
	FragmentsReliable
	FragmentsArticle
)

// Rule is what a receiver does with a packet that it need not accept.
type Rule uint8

const (
	Refused     Rule = iota // dropped, its acks unread
	Delivered               // delivered to the application all the same
	RuleUnknown             // either: the releases differ, and which one it is is not known
)

// MessageForm says how messages are laid out in a payload.
type MessageForm uint8

const (
	MessagesNone   MessageForm = iota // the payload is opaque
	MessagesByID                      // count; then id, type and body of each
	MessagesSimple                    // message ack, count, start id; then type and body of each
)

// The words of each setting, in the order of its constants.
var (
	formWords     = []string{"fixed", "reliable", "netcode"}
	orderWords    = []string{"little", "big"}
	prefixWords   = []string{"zero", "id", "crc32"}
	fieldWords    = []string{"sequence", "ack", "ack_bits"}
	ackBaseWords  = []string{"ack-n", "ack-n-1"}
	fragmentWords = []string{"none", "reliable", "article"}
	ruleWords     = []string{"refused", "delivered", "unknown"}
	messageWords  = []string{"none", "by-id", "simple"}
)

func word[E ~uint8](words []string, e E) string {
	if int(e) < len(words) {
		return words[e]
	}
	return fmt.Sprintf("unknown(%d)", e)
}

func read[E ~uint8](words []string, text []byte, e *E) error {
	for i, w := range words {
		if w == string(text) {
			*e = E(i)
			return nil
		}
	}
	return fmt.Errorf("expected one of %s, found %q", strings.Join(words, ", "), text)
}

func (f Form) String() string         { return word(formWords, f) }
func (o ByteOrder) String() string    { return word(orderWords, o) }
func (p Prefix) String() string       { return word(prefixWords, p) }
func (f FieldName) String() string    { return word(fieldWords, f) }
func (a AckBase) String() string      { return word(ackBaseWords, a) }
func (f FragmentForm) String() string { return word(fragmentWords, f) }
func (r Rule) String() string         { return word(ruleWords, r) }
func (m MessageForm) String() string  { return word(messageWords, m) }

// UnmarshalText and MarshalText let profile files use the words.

func (f *Form) UnmarshalText(text []byte) error         { return read(formWords, text, f) }
func (o *ByteOrder) UnmarshalText(text []byte) error    { return read(orderWords, text, o) }
func (p *Prefix) UnmarshalText(text []byte) error       { return read(prefixWords, text, p) }
func (f *FieldName) UnmarshalText(text []byte) error    { return read(fieldWords, text, f) }
func (a *AckBase) UnmarshalText(text []byte) error      { return read(ackBaseWords, text, a) }
func (f *FragmentForm) UnmarshalText(text []byte) error { return read(fragmentWords, text, f) }
func (r *Rule) UnmarshalText(text []byte) error         { return read(ruleWords, text, r) }
func (m *MessageForm) UnmarshalText(text []byte) error  { return read(messageWords, text, m) }

func (f Form) MarshalText() ([]byte, error)         { return []byte(f.String()), nil }
func (o ByteOrder) MarshalText() ([]byte, error)    { return []byte(o.String()), nil }
func (p Prefix) MarshalText() ([]byte, error)       { return []byte(p.String()), nil }
func (f FieldName) MarshalText() ([]byte, error)    { return []byte(f.String()), nil }
func (a AckBase) MarshalText() ([]byte, error)      { return []byte(a.String()), nil }
func (f FragmentForm) MarshalText() ([]byte, error) { return []byte(f.String()), nil }
func (r Rule) MarshalText() ([]byte, error)         { return []byte(r.String()), nil }
func (m MessageForm) MarshalText() ([]byte, error)  { return []byte(m.String()), nil }

package gaffer

import (
	"fmt"
	"sync/atomic"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	"github.com/ackscope/ackscope/schema"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Yojimbo is the name of the built-in profile that exists if keys are given. It is also
// the base of users' profiles of their games.
const Yojimbo = "yojimbo"

// YojimboSettings is the content of a profile file with base yojimbo: the channels of
// the game's ClientServerConfig, and its messages.
type YojimboSettings struct {
	wire.Yojimbo `yaml:",inline"`

	Schema *schema.Schema `yaml:"schema"`
}

// done checks the settings of a file.
func (s *YojimboSettings) done() (*dissect.Config, error) {
	y := s.Yojimbo
	if s.Schema != nil {
		if err := s.Schema.Compile(wire.Coding{}); err != nil {
			return nil, err
		}
		for kind := range s.Schema.Messages {
			if y.MessageTypes > 0 && int64(kind) >= int64(y.MessageTypes) {
				return nil, fmt.Errorf("schema.messages.%d: message_types says that there are %d", kind, y.MessageTypes)
			}
		}
		y.Bodies = newBodies("gaffer.message", s.Schema.Messages)
	}
	if len(y.Channels) == 0 && y.Bodies != nil {
		// Only the messages are given. The channels are inferred from the packets.
		y.MessageTypes = max(y.MessageTypes, 1)
		for kind := range s.Schema.Messages {
			y.MessageTypes = max(y.MessageTypes, int(kind)+1)
		}
		return &dissect.Config{Profile: &y}, nil
	}
	if err := y.Validate(); err != nil {
		return nil, err
	}
	return &dissect.Config{Profile: &y}, nil
}

// secured is the profile of flows that can be decrypted.
type secured struct {
	layers yojimbo.Layers
	keys   *netcode.Keys
	last   atomic.Pointer[netcode.Session] // opened the last datagram for display; tried first
}

// Format hides the keys from every verb.
func (s *secured) Format(f fmt.State, _ rune) { fmt.Fprint(f, Yojimbo) }

// WithKeys returns a descriptor that decrypts netcode flows with the given keys. The
// profiles extra are those of WithProfiles.
func WithKeys(extra []dissect.Profile, keys *netcode.Keys) *dissect.Protocol {
	return newProtocol(extra, keys)
}

// secure returns the profile of decrypted flows. If the game's configuration is
// unknown, connection is nil.
func (s *profileSet) secure(name string, connection *wire.Yojimbo) *dissect.Config {
	reliable, _, err := wire.Builtin(wire.ReliableFrom13) // netcode drops all duplicates
	if err != nil {
		panic(err) // see newProfileSet
	}
	l := yojimbo.Layers{
		Netcode: s.netcode, Reliable: reliable, Connection: connection,
		Found: &atomic.Pointer[yojimbo.Inference]{},
	}
	if connection != nil && len(connection.Channels) == 0 {
		l.Connection, l.Known = nil, connection
	}
	return &dissect.Config{Dialect: name, Profile: &secured{layers: l, keys: s.keys}}
}

// connection returns the configuration that reads a flow's packets. It is nil if there
// is none.
func (s *secured) connection(c *dissect.Config) *wire.Yojimbo {
	if s.layers.Connection != nil {
		return s.layers.Connection
	}
	if i, ok := c.Facts.Settings.(*yojimbo.Inference); ok {
		return i.Config
	}
	return nil
}

// open decrypts a datagram of any session, for display.
func (s *secured) open(dg *machine.Datagram, pk *wire.Packet) ([]byte, error) {
	d := netcode.OfAnyFlow(s.keys, s.last.Load())
	plain, err := d.Open(dg, pk)
	if err != nil && d.Session() != nil {
		d = netcode.OfAnyFlow(s.keys, nil)
		plain, err = d.Open(dg, pk)
	}
	if err == nil {
		s.last.Store(d.Session())
	}
	return plain, err
}

// keyedClassifier adds to a classifier what keys show: a flow whose datagrams open is
// certainly netcode.
type keyedClassifier struct {
	classifier
	decryptor *netcode.Decryptor
	opened    int
	closed    int
	failed    error // why the request's token stayed closed
}

// Reset forgets the flow.
func (c *keyedClassifier) Reset() {
	c.classifier.Reset()
	*c = keyedClassifier{classifier: c.classifier, decryptor: netcode.NewDecryptor(c.set.keys)}
}

// Sure reports whether the keys open the flow, or its dialect is settled without.
func (c *keyedClassifier) Sure() bool { return c.opened > 0 || c.classifier.Sure() }

// Feed weighs one more datagram.
func (c *keyedClassifier) Feed(d *machine.Datagram) {
	c.classifier.Feed(d)
	if c.opened > 3 || c.closed > 64 {
		return
	}
	var pk wire.Packet
	if c.set.netcode.Parse(d.Bytes, d.Length, &pk) != nil {
		return
	}
	if pk.NetcodeType == wire.NetcodeRequestType {
		if c.failed = c.decryptor.Request(d); c.failed == nil {
			c.opened++
		}
		return
	}
	if _, err := c.decryptor.Open(d, &pk); err == nil {
		c.opened++
	} else {
		c.closed++
	}
}

// openedBits is the evidence of a correct authentication tag.
const openedBits = 128

// Verdict returns the dialect of the flow.
func (c *keyedClassifier) Verdict() dissect.Verdict {
	if c.opened == 0 {
		v := c.classifier.Verdict()
		if c.failed != nil && v.Config != nil {
			v.Reason += "; it stays closed: " + c.failed.Error()
		}
		return v
	}
	v := dissect.Verdict{Config: c.set.secured, Bits: openedBits, Confidence: 1, Settled: true}
	if s := c.decryptor.Session(); c.decryptor.Moved() {
		v.Reason = "its datagrams open with the session keys of another flow, from whose address its client has moved"
	} else if s != nil && s.Token != nil {
		v.Reason = fmt.Sprintf("its connect token opens with the private key given for protocol id %#x", s.ProtocolID)
	} else {
		v.Reason = "its datagrams open with the session keys given"
	}
	return v
}

package netcode

import (
	"encoding/binary"
	"errors"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Decryptor opens the datagrams of one netcode flow. It takes the session keys from the
// token of the flow's connection request. If the request was not captured, it uses the
// session keys of the key file. Or it uses those of another flow, since a client may change
// its address. Once the session is known, it allocates nothing per
// datagram.
type Decryptor struct {
	keys    *Keys
	session *Session
	client  machine.Side // known once a datagram was opened
	sure    bool         // client is known
	failed  error        // why the token of the last request stayed closed
	all     bool         // sessions that other flows opened may be this one's
	asked   bool         // the flow's own connection request was opened
	tries   int          // sessions tried without success on datagrams of this flow
	others  int          // of them, those of other flows

	nonce [chacha20poly1305.NonceSize]byte
	data  []byte
	plain []byte
}

// NewDecryptor returns a Decryptor for a flow about which nothing is known.
func NewDecryptor(k *Keys) *Decryptor { return &Decryptor{keys: k} }

// OfAnyFlow returns a Decryptor for datagrams of any session opened so far, of whatever
// flow. It tries last first if that is not nil.
func OfAnyFlow(k *Keys, last *Session) Decryptor {
	return Decryptor{keys: k, session: last, all: true}
}

// Why a datagram stays closed.
var (
	ErrNoSession = errors.New("no key: its connection request was not captured, and no session key of the key file " +
		"opens it")
	ErrForged  = yojimbo.ErrForged
	ErrSnapped = errors.New("cut by the capture's snap length: what is encrypted can only be opened whole")
)

// othersMost bounds the sessions of other flows that are tried on a flow without a request:
// each of 4,096 on two datagrams.
const othersMost = 1 << 13

// maxTries bounds the sessions that are tried on a flow without a request.
const maxTries = 1 << 16

// Clone returns an independent copy.
func (d *Decryptor) Clone() yojimbo.Opener {
	c := *d
	c.data, c.plain = nil, nil
	return &c
}

// Session returns the session of the flow. It is nil until it is known.
func (d *Decryptor) Session() *Session { return d.session }

// Connection returns the session of the flow as an identity. It is nil until it is known.
func (d *Decryptor) Connection() any {
	if d.session == nil {
		return nil
	}
	return d.session
}

// Moved reports whether the keys are those of another flow: the client changed its address.
func (d *Decryptor) Moved() bool { return d.session != nil && d.session.Token != nil && !d.asked }

// Client returns the side that is the client. It returns false until that is known.
func (d *Decryptor) Client() (machine.Side, bool) { return d.client, d.sure }

// Failed says why the token of the last connection request stayed closed.
func (d *Decryptor) Failed() error { return d.failed }

// Request processes a connection request. Its session becomes the flow's.
func (d *Decryptor) Request(dg *machine.Datagram) error {
	if len(dg.Bytes) < dg.Length {
		return ErrSnapped
	}
	q, err := wire.ParseNetcodeRequest(dg.Bytes)
	if err != nil {
		return err
	}
	s, err := d.keys.Open(&q)
	d.failed = err
	if err != nil {
		return err
	}
	d.session, d.client, d.sure, d.asked = s, dg.From, true, true
	return nil
}

// Open decrypts any other datagram, whose clear part is pk. The result is valid until
// the next call.
func (d *Decryptor) Open(dg *machine.Datagram, pk *wire.Packet) ([]byte, error) {
	if len(dg.Bytes) < dg.Length {
		return nil, ErrSnapped
	}
	if s := d.session; s != nil {
		if plain, ok := d.try(s, dg, pk); ok {
			return plain, nil
		}
		if s.Token != nil {
			return nil, ErrForged
		}
	} else if d.failed != nil {
		return nil, d.failed
	}
	var plain []byte
	found := false
	// A client whose address changed sends no request from its new address.
	others := d.session == nil && d.others < othersMost && d.keys.mayTry()
	d.keys.each(d.all || others, func(s *Session) bool {
		if s == d.session || d.tries >= maxTries {
			return d.tries >= maxTries
		}
		d.tries++
		if s.Token != nil && !d.all {
			d.others++
			d.keys.tried.Add(1)
		}
		if plain, found = d.try(s, dg, pk); found {
			d.session = s
		}
		return found
	})
	switch {
	case found:
		return plain, nil
	case d.session != nil:
		return nil, ErrForged
	}
	return nil, ErrNoSession
}

// try opens a datagram with the session's key for its direction. It tries both keys if
// the client is not known yet.
func (d *Decryptor) try(s *Session, dg *machine.Datagram, pk *wire.Packet) ([]byte, bool) {
	if d.sure {
		open := s.toClient
		if dg.From == d.client {
			open = s.toServer
		}
		return d.open(open, s.ProtocolID, dg.Bytes, pk)
	}
	if plain, ok := d.open(s.toServer, s.ProtocolID, dg.Bytes, pk); ok {
		d.client, d.sure = dg.From, true
		return plain, true
	}
	if plain, ok := d.open(s.toClient, s.ProtocolID, dg.Bytes, pk); ok {
		d.client, d.sure = dg.From.Other(), true
		return plain, true
	}
	return nil, false
}

func (d *Decryptor) open(open opener, protocolID uint64, b []byte, pk *wire.Packet) ([]byte, bool) {
	binary.LittleEndian.PutUint64(d.nonce[4:], pk.NetcodeSequence)
	d.data = wire.AppendNetcodeData(d.data[:0], protocolID, b[0])
	plain, err := open(d.plain[:0], d.nonce[:], b[pk.PayloadOffset:], d.data)
	if err != nil {
		return nil, false
	}
	d.plain = plain
	return plain, true
}

// Seal encrypts b with the same keys. b is a copy of a datagram that Open has
// decrypted. After its header it holds plain bytes of plaintext, which the encrypted
// bytes replace.
func (d *Decryptor) Seal(dg *machine.Datagram, pk *wire.Packet, b []byte, plain int) {
	seal := d.session.sealToServer
	if dg.From != d.client {
		seal = d.session.sealToClient
	}
	var nonce [chacha20poly1305.NonceSize]byte
	binary.LittleEndian.PutUint64(nonce[4:], pk.NetcodeSequence)
	data := wire.AppendNetcodeData(nil, d.session.ProtocolID, b[0])
	sealed := seal(nil, nonce[:], b[pk.PayloadOffset:pk.PayloadOffset+plain], data)
	copy(b[pk.PayloadOffset:], sealed)
}

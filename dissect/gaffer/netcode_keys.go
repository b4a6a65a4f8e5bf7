package gaffer

import (
	"bytes"
	"crypto/cipher"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/chacha20poly1305"

	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// KeyFile is what a user's key file says (docs/keys.md): the private keys of
// servers, which open the connect tokens that clients send to them, or the
// session keys themselves.
type KeyFile struct {
	Servers  []ServerKey   `yaml:"servers" json:"servers"`
	Sessions []SessionKeys `yaml:"sessions" json:"sessions"`
}

// ServerKey is the private key that a server shares with whoever makes tokens
// for it.
type ServerKey struct {
	ProtocolID ProtocolID `yaml:"protocol_id" json:"protocol_id"`
	PrivateKey Key        `yaml:"private_key" json:"private_key"`
}

// SessionKeys are those of one client's connection: all that is needed where
// its connection request was not captured.
type SessionKeys struct {
	ProtocolID     ProtocolID `yaml:"protocol_id" json:"protocol_id"`
	ClientToServer Key        `yaml:"client_to_server" json:"client_to_server"`
	ServerToClient Key        `yaml:"server_to_client" json:"server_to_client"`
}

// ProtocolID is netcode's 64-bit id of a game, written as a number or in
// hexadecimal behind 0x.
type ProtocolID struct {
	value uint64
	given bool
}

// UnmarshalText reads one.
func (p *ProtocolID) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(strings.TrimSpace(string(text)), 0, 64)
	if err != nil {
		return errors.New("protocol_id: expected a number of 64 bits such as 0x11223344556677") // what stands there may be a key
	}
	*p = ProtocolID{v, true}
	return nil
}

// UnmarshalJSON reads one that is a JSON number or a string.
func (p *ProtocolID) UnmarshalJSON(b []byte) error { return p.UnmarshalText(bytes.Trim(b, `"`)) }

// Key is a key of 32 bytes, written as 64 hexadecimal digits. It formats as
// "(key)": no text, log or error shows one.
type Key struct {
	bytes [wire.KeyLen]byte
	given bool
}

// MakeKey takes a key's bytes.
func MakeKey(b [wire.KeyLen]byte) Key { return Key{b, true} }

// UnmarshalText reads one. Its error does not repeat what it found.
func (k *Key) UnmarshalText(text []byte) error {
	text = bytes.TrimSpace(text)
	if len(text) != 2*wire.KeyLen {
		return fmt.Errorf("a key: expected %d hexadecimal digits, found %d characters", 2*wire.KeyLen, len(text))
	}
	if _, err := hex.Decode(k.bytes[:], text); err != nil {
		return fmt.Errorf("a key: expected %d hexadecimal digits, found another character among them", 2*wire.KeyLen)
	}
	k.given = true
	return nil
}

// Format keeps the key out of every verb.
func (k Key) Format(f fmt.State, _ rune) { io.WriteString(f, "(key)") } //nolint:errcheck // fmt.State never fails

// MarshalText keeps it out of every encoder.
func (k Key) MarshalText() ([]byte, error) { return []byte("(key)"), nil }

// maxSessions bounds the connections whose keys are kept: those of more tokens
// than that in one capture can no longer be told apart for packets looked at
// out of order.
const maxSessions = 4096

// Keys opens netcode's encryption with what a key file gives. It keeps the
// sessions that it opened, so that any packet can be looked at again. It may be
// used by many at once, and prints as nothing.
type Keys struct {
	servers []server

	mu       sync.Mutex
	sessions []*Session // given ones first
	byNonce  map[[wire.TokenNonceLen]byte]*Session
}

// Format keeps the keys out of every verb.
func (k *Keys) Format(f fmt.State, _ rune) { io.WriteString(f, "(keys)") } //nolint:errcheck // fmt.State never fails

// server opens what one private key encrypted. Where keys are kept, they are
// kept behind an interface: no verb of fmt follows it.
type server struct {
	protocolID uint64
	tokens     cipher.AEAD
}

// Session is one client's connection with its keys.
type Session struct {
	ProtocolID uint64
	Token      *wire.Token // nil where the key file gave the session keys

	toServer, toClient cipher.AEAD
}

// Format keeps the keys out of every verb.
func (s *Session) Format(f fmt.State, _ rune) { io.WriteString(f, "(session)") } //nolint:errcheck // fmt.State never fails

// ReadKeys reads a key file in JSON.
func ReadKeys(r io.Reader) (*Keys, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var f KeyFile
	if err := d.Decode(&f); err != nil {
		// The decoder's own errors name fields and types, and single characters.
		return nil, fmt.Errorf("key file: %w", err)
	}
	return NewKeys(&f)
}

// NewKeys checks a key file's content and makes it ready.
func NewKeys(f *KeyFile) (*Keys, error) {
	k := &Keys{byNonce: map[[wire.TokenNonceLen]byte]*Session{}}
	if len(f.Servers)+len(f.Sessions) == 0 {
		return nil, errors.New("key file: expected servers, sessions or both, found neither")
	}
	for i, s := range f.Servers {
		if !s.PrivateKey.given {
			return nil, fmt.Errorf("key file: servers[%d]: private_key is missing", i)
		}
		if !s.ProtocolID.given {
			return nil, fmt.Errorf("key file: servers[%d]: protocol_id is missing", i)
		}
		aead, err := chacha20poly1305.NewX(s.PrivateKey.bytes[:])
		if err != nil {
			return nil, fmt.Errorf("key file: servers[%d]: %w", i, err)
		}
		k.servers = append(k.servers, server{s.ProtocolID.value, aead})
	}
	for i, s := range f.Sessions {
		if !s.ProtocolID.given || !s.ClientToServer.given || !s.ServerToClient.given {
			return nil, fmt.Errorf("key file: sessions[%d]: expected protocol_id, client_to_server and server_to_client", i)
		}
		made, err := newSession(s.ProtocolID.value, &s.ClientToServer.bytes, &s.ServerToClient.bytes)
		if err != nil {
			return nil, fmt.Errorf("key file: sessions[%d]: %w", i, err)
		}
		k.sessions = append(k.sessions, made)
	}
	return k, nil
}

func newSession(protocolID uint64, toServer, toClient *[wire.KeyLen]byte) (*Session, error) {
	s := &Session{ProtocolID: protocolID}
	var err error
	if s.toServer, err = chacha20poly1305.New(toServer[:]); err != nil {
		return nil, err
	}
	if s.toClient, err = chacha20poly1305.New(toClient[:]); err != nil {
		return nil, err
	}
	return s, nil
}

// Why a connect token stays closed.
var (
	ErrNoServerKey = errors.New("the key file holds no private key for this protocol id")
	ErrWrongKey    = errors.New("no private key of the key file opens the connect token: another key made it, or the request was altered")
)

// Open opens the token of a connection request and gives the session that it
// begins. The error is ErrNoServerKey, ErrWrongKey, or says what is wrong with
// the token.
func (k *Keys) Open(q *wire.NetcodeRequest) (*Session, error) {
	var nonce [wire.TokenNonceLen]byte
	copy(nonce[:], q.Nonce)
	k.mu.Lock()
	known := k.byNonce[nonce]
	k.mu.Unlock()
	// The nonce alone does not name the token: it is told again from another one
	// by opening it.
	fits := false
	for i := range k.servers {
		s := &k.servers[i]
		if s.protocolID != q.ProtocolID {
			continue
		}
		fits = true
		plain, err := s.tokens.Open(nil, q.Nonce, q.Token, q.AppendTokenData(nil))
		if err != nil {
			continue
		}
		token, err := wire.ParseToken(plain)
		if err != nil {
			return nil, err
		}
		if known != nil && known.Token.ClientToServer == token.ClientToServer && known.Token.ServerToClient == token.ServerToClient {
			return known, nil
		}
		made, err := newSession(q.ProtocolID, &token.ClientToServer, &token.ServerToClient)
		if err != nil {
			return nil, err
		}
		made.Token = token
		k.keep(nonce, made)
		return made, nil
	}
	if !fits {
		return nil, ErrNoServerKey
	}
	return nil, ErrWrongKey
}

func (k *Keys) keep(nonce [wire.TokenNonceLen]byte, s *Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.sessions) < maxSessions {
		k.sessions = append(k.sessions, s)
		k.byNonce[nonce] = s
	}
}

// each calls do with the sessions, newest first, until it returns true.
func (k *Keys) each(do func(*Session) bool) {
	k.mu.Lock()
	sessions := k.sessions[:len(k.sessions):len(k.sessions)]
	k.mu.Unlock()
	for i := len(sessions) - 1; i >= 0; i-- {
		if do(sessions[i]) {
			return
		}
	}
}

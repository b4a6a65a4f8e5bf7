package netcode

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/chacha20poly1305"

	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// KeyFile is the content of a user's key file (docs/keys.md). It has the private keys
// of servers, which open the connect tokens that clients send to them. Or it has the
// session keys themselves.
type KeyFile struct {
	Servers  []ServerKey   `yaml:"servers"`
	Sessions []SessionKeys `yaml:"sessions"`
}

// ServerKey is the private key that a server shares with the service that makes its
// tokens: 64 hexadecimal digits. The protocol id is netcode's 64-bit id of a game, as a
// number, or in hexadecimal after 0x.
type ServerKey struct {
	ProtocolID Secret `yaml:"protocol_id"`
	PrivateKey Secret `yaml:"private_key"`
}

// SessionKeys are the keys of one client's connection. They suffice if its connection
// request was not captured.
type SessionKeys struct {
	ProtocolID     Secret `yaml:"protocol_id"`
	ClientToServer Secret `yaml:"client_to_server"`
	ServerToClient Secret `yaml:"server_to_client"`
}

// Secret is a value of a key file. It formats as "(secret)", so no text, log or error
// shows it. Protocol ids are not secret, but a user may put a key in their place.
type Secret struct{ text string }

// UnmarshalYAML stores the text of a scalar as the file has it.
func (s *Secret) UnmarshalYAML(b []byte) error {
	text, _, _ := strings.Cut(string(b), " #")
	s.text = strings.Trim(strings.TrimSpace(text), `"'`)
	return nil
}

// Format hides the secret from every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, "(secret)") } //nolint:errcheck // fmt.State never fails

// MarshalText hides the secret from every encoder.
func (s Secret) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// number reads a protocol id.
func (s Secret) number(name string) (uint64, error) {
	if s.text == "" {
		return 0, fmt.Errorf("%s is missing", name)
	}
	v, err := strconv.ParseUint(s.text, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: expected a number of 64 bits such as 0x11223344556677", name)
	}
	return v, nil
}

// key reads a key.
func (s Secret) key(name string) (k [wire.KeyLen]byte, err error) {
	if s.text == "" {
		return k, fmt.Errorf("%s is missing", name)
	}
	if len(s.text) != 2*wire.KeyLen {
		return k, fmt.Errorf("%s: expected %d hexadecimal digits, found %d characters", name, 2*wire.KeyLen, len(s.text))
	}
	if _, err := hex.Decode(k[:], []byte(s.text)); err != nil {
		return k, fmt.Errorf("%s: expected %d hexadecimal digits, found another character among them", name, 2*wire.KeyLen)
	}
	return k, nil
}

// maxSessions bounds the connections whose keys are kept. If a capture has more tokens,
// packets of the others cannot be opened out of order.
const maxSessions = 4096

// Keys opens netcode's encryption with the keys of a key file. It keeps the sessions
// that it opened, so that any packet can be opened again. It is safe for concurrent
// use. It formats without its keys.
type Keys struct {
	servers []server

	tried    atomic.Int64 // sessions of other flows that were tried on flows without a request
	mu       sync.Mutex
	sessions []*Session // the key file's come first
	given    int
	byNonce  map[[wire.TokenNonceLen]byte]*Session
}

// Format hides the keys from every verb.
func (k *Keys) Format(f fmt.State, _ rune) { io.WriteString(f, "(keys)") } //nolint:errcheck // fmt.State never fails

// opener is the Open of a cipher. Keys are kept only inside functions: no verb of fmt
// finds them there.
type opener func(dst, nonce, ciphertext, data []byte) ([]byte, error)

// sealer is the Seal of a cipher.
type sealer func(dst, nonce, plain, data []byte) []byte

// server opens what one private key encrypted.
type server struct {
	protocolID uint64
	open       opener
	seal       sealer
}

// Session is one client's connection with its keys.
type Session struct {
	ProtocolID uint64
	Token      *wire.Token // nil if the key file has the session keys

	toServer, toClient         opener
	sealToServer, sealToClient sealer
}

// Format hides the keys from every verb.
func (s *Session) Format(f fmt.State, _ rune) { io.WriteString(f, "(session)") } //nolint:errcheck // fmt.State never fails

// NewKeys checks the content of a key file and makes it ready for use. Its errors name
// settings, and repeat no value.
func NewKeys(f *KeyFile) (*Keys, error) {
	k := &Keys{byNonce: map[[wire.TokenNonceLen]byte]*Session{}}
	if len(f.Servers)+len(f.Sessions) == 0 {
		return nil, errors.New("expected servers, sessions or both, found neither")
	}
	for i, s := range f.Servers {
		id, err := s.ProtocolID.number("protocol_id")
		key, keyErr := s.PrivateKey.key("private_key")
		if err := errors.Join(err, keyErr); err != nil {
			return nil, fmt.Errorf("servers[%d]: %w", i, err)
		}
		aead, err := chacha20poly1305.NewX(key[:])
		if err != nil {
			return nil, fmt.Errorf("servers[%d]: %w", i, err)
		}
		k.servers = append(k.servers, server{id, aead.Open, aead.Seal})
	}
	for i, s := range f.Sessions {
		id, err := s.ProtocolID.number("protocol_id")
		toServer, serverErr := s.ClientToServer.key("client_to_server")
		toClient, clientErr := s.ServerToClient.key("server_to_client")
		if err := errors.Join(err, serverErr, clientErr); err != nil {
			return nil, fmt.Errorf("sessions[%d]: %w", i, err)
		}
		made, err := newSession(id, &toServer, &toClient)
		if err != nil {
			return nil, fmt.Errorf("sessions[%d]: %w", i, err)
		}
		k.sessions = append(k.sessions, made)
	}
	k.given = len(k.sessions)
	return k, nil
}

func newSession(protocolID uint64, toServer, toClient *[wire.KeyLen]byte) (*Session, error) {
	server, err := chacha20poly1305.New(toServer[:])
	if err != nil {
		return nil, err
	}
	client, err := chacha20poly1305.New(toClient[:])
	if err != nil {
		return nil, err
	}
	return &Session{
		ProtocolID: protocolID, toServer: server.Open, toClient: client.Open,
		sealToServer: server.Seal, sealToClient: client.Seal,
	}, nil
}

// Why a connect token stays closed.
var (
	ErrNoServerKey = errors.New("the key file holds no private key for this protocol id")
	ErrWrongKey    = errors.New("no private key of the key file opens the connect token: another key made it, or the " +
		"request was altered")
)

// Open opens the token of a connection request and returns its session. The error is
// ErrNoServerKey or ErrWrongKey, or says what is wrong with the token.
func (k *Keys) Open(q *wire.NetcodeRequest) (*Session, error) {
	var nonce [wire.TokenNonceLen]byte
	copy(nonce[:], q.Nonce)
	k.mu.Lock()
	known := k.byNonce[nonce]
	k.mu.Unlock()
	// The nonce alone does not identify the token. Opening it shows whether it is the
	// same.
	fits := false
	for i := range k.servers {
		s := &k.servers[i]
		if s.protocolID != q.ProtocolID {
			continue
		}
		fits = true
		plain, err := s.open(nil, q.Nonce, q.Token, q.AppendTokenData(nil))
		if err != nil {
			continue
		}
		token, err := wire.ParseToken(plain)
		if err != nil {
			return nil, err
		}
		if known != nil && known.Token.ClientToServer == token.ClientToServer &&
			known.Token.ServerToClient == token.ServerToClient {
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

// triesMost bounds how often the sessions of other flows are tried in all. A million tries take
// about a second. Anybody can forge datagrams that no session opens.
const triesMost = 1 << 20

// mayTry reports whether the sessions of other flows may be tried.
func (k *Keys) mayTry() bool { return k.tried.Load() < triesMost }

// each calls do with the sessions of the key file, or with all sessions. It goes newest
// first, until do returns true.
func (k *Keys) each(all bool, do func(*Session) bool) {
	k.mu.Lock()
	n := k.given
	if all {
		n = len(k.sessions)
	}
	sessions := k.sessions[:n:n]
	k.mu.Unlock()
	for i := len(sessions) - 1; i >= 0; i-- {
		if do(sessions[i]) {
			return
		}
	}
}

// Seal replaces a request's token with another one, encrypted with the key that opens
// the old one. It returns false if no key does.
func (k *Keys) Seal(q *wire.NetcodeRequest, plain []byte) bool {
	data := q.AppendTokenData(nil)
	for i := range k.servers {
		s := &k.servers[i]
		if s.protocolID != q.ProtocolID {
			continue
		}
		if _, err := s.open(nil, q.Nonce, q.Token, data); err != nil {
			continue
		}
		copy(q.Token, s.seal(nil, q.Nonce, plain, data))
		return true
	}
	return false
}

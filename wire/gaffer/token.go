package gaffer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/ackscope/ackscope/wire"
)

// The types of netcode's datagrams.
const (
	NetcodeRequestType = iota
	NetcodeDenied
	NetcodeChallenge
	NetcodeResponse
	NetcodeKeepAlive
	NetcodePayload
	NetcodeDisconnect
)

// Netcode 1.02: lengths in bytes of its keys and its encrypted parts.
const (
	KeyLen           = 32   // of every key
	TokenNonceLen    = 24   // XChaCha20-Poly1305
	TokenLen         = 1024 // the private connect token with its MAC
	TokenPlainLen    = TokenLen - netcodeMAC
	UserDataLen      = 256
	MaxTokenServers  = 32
	ChallengeLen     = 300 // the challenge token, encrypted with a key that never leaves the server
	serverIPv4       = 1
	serverIPv6       = 2
	requestProtocol  = 1 + 13
	requestExpire    = requestProtocol + 8
	requestNonce     = requestExpire + 8
	requestToken     = requestNonce + TokenNonceLen
	tokenServersFrom = 8 + 4
)

// NetcodeRequest is netcode's connection request. It is the only datagram that travels
// in the clear, except for its token.
//
//	[0x00][NETCODE 1.02\0][protocol id 8][expire time 8][nonce 24][private token 1024]
type NetcodeRequest struct {
	ProtocolID uint64
	Expire     uint64 // Unix time in seconds after which the server refuses it
	Nonce      []byte // of the token; aliases the datagram
	Token      []byte // encrypted, with its MAC; aliases the datagram
}

// ParseNetcodeRequest reads a connection request that was captured whole.
func ParseNetcodeRequest(b []byte) (NetcodeRequest, error) {
	if len(b) != netcodeRequestLen || b[0] != 0 || !bytes.Equal(b[1:requestProtocol], netcodeVersion) {
		return NetcodeRequest{}, errNetcodeRequest
	}
	return NetcodeRequest{
		ProtocolID: binary.LittleEndian.Uint64(b[requestProtocol:]),
		Expire:     binary.LittleEndian.Uint64(b[requestExpire:]),
		Nonce:      b[requestNonce:requestToken],
		Token:      b[requestToken:],
	}, nil
}

// Append appends the request as it is sent.
func (q *NetcodeRequest) Append(to []byte) []byte {
	to = append(append(to, 0), netcodeVersion...)
	to = binary.LittleEndian.AppendUint64(to, q.ProtocolID)
	to = binary.LittleEndian.AppendUint64(to, q.Expire)
	return append(append(to, q.Nonce...), q.Token...)
}

// AppendTokenData appends the associated data of the token's MAC: version, protocol id,
// expire time.
func (q *NetcodeRequest) AppendTokenData(to []byte) []byte {
	to = append(to, netcodeVersion...)
	to = binary.LittleEndian.AppendUint64(to, q.ProtocolID)
	return binary.LittleEndian.AppendUint64(to, q.Expire)
}

// AppendNetcodeData appends the associated data of the MAC of every other datagram:
// version, protocol id, byte 0.
func AppendNetcodeData(to []byte, protocolID uint64, first byte) []byte {
	to = append(to, netcodeVersion...)
	to = binary.LittleEndian.AppendUint64(to, protocolID)
	return append(to, first)
}

// Token is the decrypted private connect token. It contains keys, so no format prints
// it.
//
//	[client id 8][timeout 4][servers 4]{[1][IPv4 4][port 2] | [2][IPv6 8 x 2][port 2]}
//	[client-to-server key 32][server-to-client key 32][user data 256][zeros to 1008]
type Token struct {
	ClientID       uint64
	Timeout        int32 // seconds; negative: none
	Servers        []netip.AddrPort
	ClientToServer [KeyLen]byte
	ServerToClient [KeyLen]byte
	UserData       [UserDataLen]byte
}

// String describes the token without its keys.
func (t Token) String() string {
	return fmt.Sprintf("token of client %d for %v, timeout %d s", t.ClientID, t.Servers, t.Timeout)
}

// GoString returns String, for %#v.
func (t Token) GoString() string { return t.String() }

// ParseToken reads a decrypted token. Its errors contain no byte of a key.
func ParseToken(b []byte) (*Token, error) {
	if len(b) != TokenPlainLen {
		return nil, &wire.ParseError{
			Field: "netcode.token", Expected: fmt.Sprintf("%d bytes", TokenPlainLen),
			Found: fmt.Sprintf("%d", len(b)), Err: wire.ErrShort,
		}
	}
	t := &Token{ClientID: binary.LittleEndian.Uint64(b), Timeout: int32(binary.LittleEndian.Uint32(b[8:]))}
	n := binary.LittleEndian.Uint32(b[tokenServersFrom:])
	if n < 1 || n > MaxTokenServers {
		return nil, &wire.ParseError{
			Field: "netcode.token.servers", Bit: tokenServersFrom * 8,
			Expected: fmt.Sprintf("1 to %d", MaxTokenServers), Found: fmt.Sprintf("%d", n), Err: wire.ErrRange,
		}
	}
	at := tokenServersFrom + 4 // 32 IPv6 servers, keys and user data end before TokenPlainLen
	for range n {
		kind := b[at]
		at++
		var ip netip.Addr
		switch kind {
		case serverIPv4:
			ip = netip.AddrFrom4([4]byte(b[at : at+4]))
			at += 4
		case serverIPv6:
			var a [16]byte
			for i := range 8 {
				binary.BigEndian.PutUint16(a[2*i:], binary.LittleEndian.Uint16(b[at+2*i:]))
			}
			ip = netip.AddrFrom16(a)
			at += 16
		default:
			return nil, &wire.ParseError{
				Field: "netcode.token.server", Bit: (at - 1) * 8, Expected: "1 (IPv4) or 2 (IPv6)",
				Found: fmt.Sprintf("%d", kind), Err: wire.ErrRange,
			}
		}
		t.Servers = append(t.Servers, netip.AddrPortFrom(ip, binary.LittleEndian.Uint16(b[at:])))
		at += 2
	}
	at += copy(t.ClientToServer[:], b[at:])
	at += copy(t.ServerToClient[:], b[at:])
	copy(t.UserData[:], b[at:])
	return t, nil
}

// AppendToken appends the decrypted token, TokenPlainLen bytes. It writes at most
// MaxTokenServers servers.
func (t *Token) AppendToken(to []byte) []byte {
	start := len(to)
	servers := t.Servers[:min(len(t.Servers), MaxTokenServers)]
	to = binary.LittleEndian.AppendUint64(to, t.ClientID)
	to = binary.LittleEndian.AppendUint32(to, uint32(t.Timeout))
	to = binary.LittleEndian.AppendUint32(to, uint32(len(servers)))
	for _, s := range servers {
		if s.Addr().Is4() {
			a := s.Addr().As4()
			to = append(append(to, serverIPv4), a[:]...)
		} else {
			a := s.Addr().As16()
			to = append(to, serverIPv6)
			for i := range 8 {
				to = binary.LittleEndian.AppendUint16(to, binary.BigEndian.Uint16(a[2*i:]))
			}
		}
		to = binary.LittleEndian.AppendUint16(to, s.Port())
	}
	to = append(to, t.ClientToServer[:]...)
	to = append(to, t.ServerToClient[:]...)
	to = append(to, t.UserData[:]...)
	return append(to, make([]byte, start+TokenPlainLen-len(to))...)
}

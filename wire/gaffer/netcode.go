package gaffer

import (
	"bytes"

	"github.com/ackscope/ackscope/wire"
)

// Netcode 1.02: the sizes of its datagrams by type.
const (
	netcodeRequestLen = 1078
	netcodeMAC        = 16
	netcodePayload    = 5
	netcodeMost       = 1200 // bytes of a payload packet
)

var netcodeVersion = []byte("NETCODE 1.02\x00")

// netcodeBody is the length of each type's plaintext. For a payload it is the maximum.
var netcodeBody = [...]int{1: 0, 2: 308, 3: 308, 4: 8, netcodePayload: netcodeMost, 6: 0}

var netcodeWords = [...]string{
	"connection request", "connection denied", "challenge", "response", "keep-alive",
	"payload", "disconnect",
}

// NetcodeWord names a type of netcode datagrams.
func NetcodeWord(kind uint8) string {
	if int(kind) < len(netcodeWords) {
		return netcodeWords[kind]
	}
	return "unknown"
}

var (
	errNetcodeRequest = &wire.ParseError{
		Field: "netcode.version", Bit: 8,
		Expected: "a connection request: 1078 bytes that begin with NETCODE 1.02", Err: wire.ErrRange,
	}
	errNetcodeType = &wire.ParseError{
		Field: "netcode.type", Expected: "type 0 to 6 and 1 to 8 sequence bytes",
		Err: wire.ErrRange,
	}
	errNetcodeLength = &wire.ParseError{
		Field: "payload", Bit: 8, Expected: "the length that its type has",
		Err: wire.ErrRange,
	}
	errNetcodeSequence = &wire.ParseError{
		Field: "netcode.sequence", Bit: 8, Expected: "as many bytes as byte 0 says",
		Err: wire.ErrShort,
	}
)

// parseNetcode reads
//
//	request   [0x00][NETCODE 1.02\0][protocol id 8][expire 8][nonce 24][token 1024]
//	others    [type 4 bits, sequence bytes 4 bits][sequence 1..8][ciphertext][MAC 16]
func parseNetcode(b []byte, wireLen int, out *Packet) error {
	out.Kind = KindEncrypted
	if wireLen < 1 {
		return errNetcodeType
	}
	if len(b) < 1 {
		return wire.ErrSnapped
	}
	if b[0] == 0 {
		n := min(len(netcodeVersion), len(b)-1)
		if wireLen != netcodeRequestLen || !bytes.Equal(b[1:1+n], netcodeVersion[:n]) {
			return errNetcodeRequest
		}
		out.PayloadOffset = 1 + len(netcodeVersion)
		out.PayloadLen = wireLen - out.PayloadOffset
		return nil
	}
	kind, n := b[0]&15, int(b[0]>>4)
	if int(kind) >= len(netcodeBody) || kind == 0 || n < 1 || n > 8 {
		return errNetcodeType
	}
	out.NetcodeType = kind
	if wireLen < 1+n {
		return errNetcodeSequence
	}
	body := wireLen - 1 - n - netcodeMAC
	if kind == netcodePayload && (body < 1 || body > netcodeMost) || kind != netcodePayload && body != netcodeBody[kind] {
		return errNetcodeLength
	}
	if len(b) < 1+n {
		return wire.ErrSnapped
	}
	for i := n; i >= 1; i-- {
		out.NetcodeSequence = out.NetcodeSequence<<8 | uint64(b[i])
	}
	out.PayloadOffset, out.PayloadLen = 1+n, wireLen-1-n
	return nil
}

// appendNetcode appends the clear part of a netcode datagram.
func appendNetcode(to []byte, pk *Packet) []byte {
	if pk.NetcodeType == 0 {
		return append(append(to, 0), netcodeVersion...)
	}
	n := 1
	for v := pk.NetcodeSequence >> 8; v != 0; v >>= 8 {
		n++
	}
	to = append(to, pk.NetcodeType|byte(n<<4))
	for i := range n {
		to = append(to, byte(pk.NetcodeSequence>>(8*i)))
	}
	return to
}

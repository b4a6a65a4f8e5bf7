package gaffer

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// changer changes the bytes that fields show; see dissect.Protocol.Edit.
type changer = func(b []byte, d *dissect.Dissection, seal func([]byte))

// edit changes a datagram. It corrects the checksum. It decrypts what netcode
// encrypted, changes it, and encrypts it with the same keys.
func edit(ctx dissect.Context, dg *machine.Datagram, d *dissect.Dissection, change changer) ([]byte, error) {
	d.Reset()
	Dissect(ctx, dg, d)
	b := slices.Clone(dg.Bytes)
	whole := len(dg.Bytes) >= dg.Length
	if s := securedBy(ctx); s != nil {
		return s.edit(ctx, dg, d, b, change)
	}
	p := settings(ctx)
	if p != nil && p.Form == wire.FormNetcode {
		return nil, dissect.ErrEncrypted
	}
	seal := func(changed []byte) {
		if p != nil && whole {
			p.Reseal(changed, dg.Bytes)
		}
	}
	change(b, d, seal)
	seal(b)
	return b, nil
}

// edit changes a datagram of a flow whose keys are known; b is a copy of it.
func (s *secured) edit(ctx dissect.Context, dg *machine.Datagram, d *dissect.Dissection, b []byte,
	change changer,
) ([]byte, error) {
	var pk wire.Packet
	if s.layers.Netcode.Parse(dg.Bytes, dg.Length, &pk) != nil {
		change(b, d, nil) // not a packet of netcode: nothing in it is encrypted
		return b, nil     //nolint:nilerr // that it is none is no failure
	}
	if pk.NetcodeType == wire.NetcodeRequestType {
		return s.editRequest(b, change)
	}
	open := netcode.OfAnyFlow(s.keys, s.last.Load())
	plain, err := open.Open(dg, &pk)
	if err != nil {
		open = netcode.OfAnyFlow(s.keys, nil)
		if plain, err = open.Open(dg, &pk); err != nil {
			return nil, dissect.ErrEncrypted
		}
	}
	copy(b[pk.PayloadOffset:], plain)
	change(b, d, nil)
	if p := piecesOf(ctx); p != nil && pk.NetcodeType == wire.NetcodePayload {
		p.put(dg.From, plain, b[pk.PayloadOffset:])
	}
	open.Seal(dg, &pk, b, len(plain))
	return b, nil
}

// tokenEdits are the fields of a token that belong to its user and not to the protocol.
var tokenEdits = []dissect.FieldSpec{
	{Name: "gaffer.netcode.token.client_id", Kind: dissect.KindUint, Content: dissect.ContentData},
	{Name: "gaffer.netcode.token.server", Kind: dissect.KindAddr, Content: dissect.ContentAddr},
	{Name: "gaffer.netcode.token.server_port", Kind: dissect.KindUint, Content: dissect.ContentPort},
	{Name: "gaffer.netcode.token.user_data", Kind: dissect.KindBytes, Content: dissect.ContentData},
}

// editRequest changes the token of a connection request: its client, its servers and
// the user data. Its keys stay, since they open the packets.
func (s *secured) editRequest(b []byte, change changer) ([]byte, error) {
	q, err := wire.ParseNetcodeRequest(b)
	if err != nil {
		return nil, dissect.ErrEncrypted // the snap length cut its end off
	}
	session, err := s.keys.Open(&q)
	if err != nil {
		return nil, dissect.ErrEncrypted
	}
	token := *session.Token
	token.Servers = slices.Clone(token.Servers)
	one := func(spec *dissect.FieldSpec, value []byte) {
		change(value,
			&dissect.Dissection{Fields: []dissect.Field{{Spec: spec, Depth: 1, Bits: uint32(len(value)) * 8, Bytes: value}}},
			nil)
	}
	id := binary.LittleEndian.AppendUint64(nil, token.ClientID)
	one(&tokenEdits[0], id)
	token.ClientID = binary.LittleEndian.Uint64(id)
	for i, at := range token.Servers {
		addr, port := at.Addr().AsSlice(), binary.BigEndian.AppendUint16(nil, at.Port())
		one(&tokenEdits[1], addr)
		one(&tokenEdits[2], port)
		if ip, ok := netip.AddrFromSlice(addr); ok {
			token.Servers[i] = netip.AddrPortFrom(ip, binary.BigEndian.Uint16(port))
		}
	}
	one(&tokenEdits[3], token.UserData[:])
	if s.keys.Seal(&q, token.AppendToken(nil)) {
		return b, nil
	}
	return nil, dissect.ErrEncrypted
}

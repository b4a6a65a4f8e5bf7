package gaffer

import (
	"strconv"

	"github.com/ackscope/ackscope/dissect"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// The fields of the family, in the order of the decode tree.
var (
	fieldGaffer = &dissect.FieldSpec{Name: "gaffer", Label: "Gaffer", Kind: dissect.KindGroup, Doc: "The whole datagram."}
	fieldKind   = &dissect.FieldSpec{
		Name: "gaffer.kind", Label: "Kind", Kind: dissect.KindUint,
		Doc: "What the datagram is.", Enum: map[uint64]string{
			uint64(wire.KindRegular): "regular", uint64(wire.KindFragment): "fragment", uint64(wire.KindSlice): "slice",
			uint64(wire.KindSliceAck): "slice-ack", uint64(wire.KindHandshake): "handshake",
			uint64(wire.KindEncrypted): "encrypted",
		},
	}

	fieldZero = &dissect.FieldSpec{
		Name: "gaffer.prefix.zero", Label: "Zero", Kind: dissect.KindUint, Hex: true,
		Doc: "The zero byte before the header.",
	}
	fieldCRC = &dissect.FieldSpec{
		Name: "gaffer.crc32", Label: "CRC32", Kind: dissect.KindUint, Hex: true,
		Doc: "Checksum over the protocol id, which is not sent, and the datagram with this field as zeros.",
	}
	fieldCRCOK = &dissect.FieldSpec{
		Name: "gaffer.crc32.ok", Label: "CRC32 matches", Kind: dissect.KindBool,
		Doc: "Whether the checksum is right for the flow's protocol id.",
	}
	fieldProtocolID = &dissect.FieldSpec{
		Name: "gaffer.protocol_id", Label: "Protocol id", Kind: dissect.KindUint,
		Hex: true, Doc: "The 32-bit protocol id: as sent, by the profile, or solved from the checksums.",
	}

	fieldPrefix = &dissect.FieldSpec{
		Name: "gaffer.prefix", Label: "Prefix", Kind: dissect.KindUint, Hex: true,
		Doc: "First byte of a header of reliable: says what of the header is sent.",
	}
	fieldPrefixFragment = &dissect.FieldSpec{
		Name: "gaffer.prefix.fragment", Label: "Fragment", Kind: dissect.KindBool,
		Doc: "Set on fragments.",
	}
	fieldPrefixByte = [4]*dissect.FieldSpec{
		{
			Name: "gaffer.prefix.ack_bits0", Label: "ack_bits byte 0 sent", Kind: dissect.KindBool,
			Doc: "Bits 0 to 7 of ack_bits are sent; clear where all are set.",
		},
		{
			Name: "gaffer.prefix.ack_bits1", Label: "ack_bits byte 1 sent", Kind: dissect.KindBool,
			Doc: "Bits 8 to 15 of ack_bits are sent; clear where all are set.",
		},
		{
			Name: "gaffer.prefix.ack_bits2", Label: "ack_bits byte 2 sent", Kind: dissect.KindBool,
			Doc: "Bits 16 to 23 of ack_bits are sent; clear where all are set.",
		},
		{
			Name: "gaffer.prefix.ack_bits3", Label: "ack_bits byte 3 sent", Kind: dissect.KindBool,
			Doc: "Bits 24 to 31 of ack_bits are sent; clear where all are set.",
		},
	}
	fieldPrefixNear = &dissect.FieldSpec{
		Name: "gaffer.prefix.near", Label: "ack as a difference",
		Kind: dissect.KindBool, Doc: "ack is sent in one byte, as sequence minus ack.",
	}
	fieldPrefixUnused = &dissect.FieldSpec{
		Name: "gaffer.prefix.unused", Label: "Unused", Kind: dissect.KindUint,
		Doc: "Zero as the library writes it; its receiver does not look.",
	}

	fieldSequence = &dissect.FieldSpec{
		Name: "gaffer.sequence", Label: "Sequence", Kind: dissect.KindUint,
		Content: dissect.ContentSequence, Doc: "Number of the packet, which wraps.",
	}
	fieldAck = &dissect.FieldSpec{
		Name: "gaffer.ack", Label: "Ack", Kind: dissect.KindUint,
		Content: dissect.ContentAck,
		Doc: "The newest sequence that the sender has met of its peer. Alone it proves nothing: bit 0 of ack_bits says " +
			"whether that packet was received.",
	}
	fieldDifference = &dissect.FieldSpec{
		Name: "gaffer.ack_difference", Label: "sequence - ack", Kind: dissect.KindUint,
		Doc: "What is sent for ack where it fits one byte.",
	}
	fieldAckBits = &dissect.FieldSpec{
		Name: "gaffer.ack_bits", Label: "Ack bits", Kind: dissect.KindUint, Hex: true,
		Doc: "Bit n set: packet ack-n was received (ack-n-1 where the profile says so).",
	}
	fieldNothing = &dissect.FieldSpec{
		Name: "gaffer.nothing_received", Label: "Nothing received yet",
		Kind: dissect.KindBool,
		Doc:  "The header says that its sender has not received anything: the largest number as ack, and no bit.",
	}
	fieldCanonical = &dissect.FieldSpec{
		Name: "gaffer.not_canonical", Label: "Not canonical", Kind: dissect.KindBool,
		Doc: "The header is not written as reliable writes it for these values.",
	}

	fieldType = &dissect.FieldSpec{
		Name: "gaffer.type", Label: "Packet type", Kind: dissect.KindUint,
		Doc: "Type of the packet, where the profile has more than one.",
	}
	fieldFragmentID = &dissect.FieldSpec{
		Name: "gaffer.fragment.id", Label: "Fragment", Kind: dissect.KindUint,
		Doc: "Which fragment of its packet this is, from 0.",
	}
	fieldFragmentCount = &dissect.FieldSpec{
		Name: "gaffer.fragment.count", Label: "Fragments", Kind: dissect.KindUint,
		Doc: "How many fragments the packet has; reliable sends one less.",
	}

	fieldSliceChunk = &dissect.FieldSpec{
		Name: "gaffer.slice.chunk", Label: "Block", Kind: dissect.KindUint,
		Doc: "Number of the block.",
	}
	fieldSliceID = &dissect.FieldSpec{
		Name: "gaffer.slice.id", Label: "Slice", Kind: dissect.KindUint,
		Doc: "Which slice of the block this is, from 0.",
	}
	fieldSliceCount = &dissect.FieldSpec{
		Name: "gaffer.slice.count", Label: "Slices", Kind: dissect.KindUint,
		Doc: "How many slices the block has.",
	}
	fieldSliceBytes = &dissect.FieldSpec{
		Name: "gaffer.slice.bytes", Label: "Slice length", Kind: dissect.KindUint,
		Unit: "bytes", Doc: "Data bytes of the last slice; only that one says it.",
	}
	fieldSliceAcked = &dissect.FieldSpec{
		Name: "gaffer.slice.acked", Label: "Slices received", Kind: dissect.KindUint,
		Hex: true, Doc: "Bit n set: slice n came. Of a block of more than 64 slices, one field for each 64.",
	}

	fieldHandshake = &dissect.FieldSpec{
		Name: "gaffer.handshake", Label: "Handshake", Kind: dissect.KindUint,
		Doc: "Which packet of the connection this is.", Enum: handshakeEnum(),
	}
	fieldClientSalt = &dissect.FieldSpec{
		Name: "gaffer.handshake.client_salt", Label: "Client salt",
		Kind: dissect.KindUint, Hex: true, Doc: "Random number that the client chose for the connection.",
	}
	fieldChallengeSalt = &dissect.FieldSpec{
		Name: "gaffer.handshake.challenge_salt", Label: "Challenge salt",
		Kind: dissect.KindUint, Hex: true, Doc: "Random number that the server chose for the connection.",
	}
	fieldReason = &dissect.FieldSpec{
		Name: "gaffer.handshake.reason", Label: "Reason", Kind: dissect.KindUint,
		Doc: "Why the connection was denied.", Enum: map[uint64]string{0: "server full", 1: "already connected"},
	}
	fieldFiller = &dissect.FieldSpec{
		Name: "gaffer.handshake.filler", Label: "Filler", Kind: dissect.KindBytes,
		Content: dissect.ContentFiller, Doc: "Zero bytes that make a request larger than its answer.",
	}

	fieldNetcodeVersion = &dissect.FieldSpec{
		Name: "gaffer.netcode.version", Label: "Version", Kind: dissect.KindText,
		Doc: "Netcode's version, in connection requests.",
	}
	fieldNetcodeType = &dissect.FieldSpec{
		Name: "gaffer.netcode.type", Label: "Type", Kind: dissect.KindUint,
		Doc: "Type of the netcode datagram.", Enum: netcodeEnum(),
	}
	fieldNetcodeLength = &dissect.FieldSpec{
		Name: "gaffer.netcode.counter_bytes", Label: "Counter length",
		Kind: dissect.KindUint, Unit: "bytes", Doc: "How many bytes of the counter are sent.",
	}
	fieldNetcodeSequence = &dissect.FieldSpec{
		Name: "gaffer.netcode.counter", Label: "Counter", Kind: dissect.KindUint,
		Doc: "Number of the datagram, which is also its nonce.",
	}
	fieldCiphertext = &dissect.FieldSpec{
		Name: "gaffer.netcode.ciphertext", Label: "Ciphertext",
		Kind: dissect.KindBytes, Doc: "What netcode has encrypted.",
	}
	fieldMAC = &dissect.FieldSpec{
		Name: "gaffer.netcode.mac", Label: "MAC", Kind: dissect.KindBytes,
		Doc: "Authentication of the ciphertext.",
	}

	fieldPayloadLength = &dissect.FieldSpec{
		Name: "gaffer.payload.length", Label: "Payload length", Kind: dissect.KindUint,
		Unit: "bytes", Doc: "Length of the payload as the packet says it.",
	}
	fieldPadding = &dissect.FieldSpec{
		Name: "gaffer.padding", Label: "Padding", Kind: dissect.KindUint,
		Doc: "Zero bits up to the next whole byte.",
	}
	fieldPayload = &dissect.FieldSpec{
		Name: "gaffer.payload", Label: "Payload", Kind: dissect.KindBytes,
		Content: dissect.ContentData, Doc: "What the game sent, where no schema reads it.",
	}
	fieldMessageAck = &dissect.FieldSpec{
		Name: "gaffer.message.ack", Label: "Message ack", Kind: dissect.KindUint,
		Doc: "Simple scheme: the most recent message id that the sender has received.",
	}
	fieldMessageCount = &dissect.FieldSpec{
		Name: "gaffer.message.count", Label: "Messages", Kind: dissect.KindUint,
		Doc: "How many messages the packet carries.",
	}
	fieldMessageStart = &dissect.FieldSpec{
		Name: "gaffer.message.start", Label: "First message id",
		Kind: dissect.KindUint, Doc: "Simple scheme: the id of the first message; the others follow it.",
	}
	fieldMessage = &dissect.FieldSpec{
		Name: "gaffer.message", Label: "Message", Kind: dissect.KindGroup,
		Doc: "One message.",
	}
	fieldMessageID = &dissect.FieldSpec{
		Name: "gaffer.message.id", Label: "Message id", Kind: dissect.KindUint,
		Doc: "Number of the message; not on the wire in the simple scheme.",
	}
	fieldMessageType = &dissect.FieldSpec{
		Name: "gaffer.message.type", Label: "Message type", Kind: dissect.KindUint,
		Doc: "Type of the message: its body is read by the schema's.",
	}
	fieldEndCheck = &dissect.FieldSpec{
		Name: "gaffer.end_check", Label: "End check", Kind: dissect.KindUint,
		Hex: true, Doc: "0x9908ace2 closes every packet of the article's frame.",
	}
)

var allFields = []*dissect.FieldSpec{
	fieldGaffer, fieldKind,
	fieldZero, fieldCRC, fieldCRCOK, fieldProtocolID,
	fieldPrefix, fieldPrefixFragment, fieldPrefixByte[0], fieldPrefixByte[1], fieldPrefixByte[2], fieldPrefixByte[3],
	fieldPrefixNear, fieldPrefixUnused,
	fieldSequence, fieldAck, fieldDifference, fieldAckBits, fieldNothing, fieldCanonical,
	fieldType, fieldFragmentID, fieldFragmentCount,
	fieldSliceChunk, fieldSliceID, fieldSliceCount, fieldSliceBytes, fieldSliceAcked,
	fieldHandshake, fieldClientSalt, fieldChallengeSalt, fieldReason, fieldFiller,
	fieldNetcodeVersion, fieldNetcodeType, fieldNetcodeLength, fieldNetcodeSequence, fieldCiphertext, fieldMAC,
	fieldMessageAck, fieldMessageCount, fieldMessageStart, fieldMessage, fieldMessageID, fieldMessageType,
	fieldPayloadLength, fieldPadding, fieldPayload, fieldEndCheck,
}

func handshakeEnum() map[uint64]string {
	m := map[uint64]string{}
	for k := wire.ConnectRequest; k <= wire.ConnectDisconnect; k++ {
		m[uint64(k)] = k.String()
	}
	return m
}

func netcodeEnum() map[uint64]string {
	m := map[uint64]string{}
	for k := uint8(0); k <= 6; k++ {
		m[uint64(k)] = wire.NetcodeWord(k)
	}
	return m
}

// ackBitsNotes holds the note for each number of packets that ack_bits names. It is
// built once, so that dissecting a packet builds no string.
var ackBitsNotes = func() (notes [65]string) {
	for n := range notes {
		notes[n] = strconv.Itoa(n) + " packets named"
	}
	notes[0], notes[1] = "no packet named", "1 packet named"
	return notes
}()

package riptide

import (
	"math/bits"
	"strconv"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// The fields, in the order of the decode tree.
var (
	fieldRiptide = &dissect.FieldSpec{
		Name: "riptide", Label: "Riptide", Kind: dissect.KindGroup,
		Doc: "The whole message.",
	}
	fieldLength = &dissect.FieldSpec{
		Name: "riptide.length", Label: "Length", Kind: dissect.KindUint,
		Doc: "Over TCP: the bytes of the message, as the 2 or 4 bytes before it say. These bytes are not counted.",
	}
	fieldType = &dissect.FieldSpec{
		Name: "riptide.type", Label: "Type", Kind: dissect.KindUint,
		Doc:  "What the message is. The numbers are those of 2.1.0 in every dialect; AckExtra, which only 2.0 has, is 11.",
		Enum: typeEnum(),
	}
	fieldSequence = &dissect.FieldSpec{
		Name: "riptide.sequence", Label: "Sequence", Kind: dissect.KindUint,
		Content: dissect.ContentSequence,
		Doc:     "The message's own sequence id: reliable messages count in one row, Notify messages in another.",
	}
	fieldMessageID = &dissect.FieldSpec{
		Name: "riptide.message_id", Label: "Message id", Kind: dissect.KindUint,
		Doc: "Which of the application's messages it is.",
	}
	fieldLast = &dissect.FieldSpec{
		Name: "riptide.last", Label: "Last received", Kind: dissect.KindUint,
		Content: dissect.ContentAck, Doc: "Ack, Notify: the newest sequence id that the sender has received.",
	}
	fieldAckBits = &dissect.FieldSpec{
		Name: "riptide.ack_bits", Label: "Ack bits", Kind: dissect.KindUint, Hex: true,
		Doc: "Bit n set: the id last-1-n was received. Builds up to 2.2.1 can set bits of ids that never came, after a " +
			"jump of 32 or more.",
	}
	fieldFlag = &dissect.FieldSpec{
		Name: "riptide.ack_flag", Label: "Cause follows", Kind: dissect.KindBool,
		Doc: "2.1: the Ack answers another id than the newest.",
	}
	fieldCause = &dissect.FieldSpec{
		Name: "riptide.ack_cause", Label: "Answers", Kind: dissect.KindUint,
		Content: dissect.ContentAck, Doc: "The sequence id that the Ack answers; where it is not sent it is the newest.",
	}
	fieldReason = &dissect.FieldSpec{
		Name: "riptide.reason", Label: "Reason", Kind: dissect.KindUint,
		Doc: "Of Reject and Disconnect, as written: the numbers differ between dialects.",
	}
	fieldWord = &dissect.FieldSpec{
		Name: "riptide.reason.name", Label: "Reason", Kind: dissect.KindText,
		Doc: "The reason's name in the sender's dialect.",
	}
	fieldPing = &dissect.FieldSpec{
		Name: "riptide.ping", Label: "Ping id", Kind: dissect.KindUint,
		Doc: "Number of a heartbeat, which the answer repeats.",
	}
	fieldRTT = &dissect.FieldSpec{
		Name: "riptide.rtt", Label: "RTT", Kind: dissect.KindInt, Unit: "ms",
		Doc: "The client's own smoothed round trip time; -1 before the first sample.",
	}
	fieldClientID = &dissect.FieldSpec{
		Name: "riptide.client_id", Label: "Client id", Kind: dissect.KindUint,
		Doc: "The client that Welcome, ClientConnected or ClientDisconnected is about.",
	}
	fieldData = &dissect.FieldSpec{
		Name: "riptide.data", Label: "Data", Kind: dissect.KindBytes,
		Content: dissect.ContentData, Doc: "What the application sent with Connect, Reject or Disconnect.",
	}
	fieldPayload = &dissect.FieldSpec{
		Name: "riptide.payload", Label: "Payload", Kind: dissect.KindBytes,
		Content: dissect.ContentData,
		Doc: "The values of a user message where no schema reads them. Bit-packed they begin within a byte: shown are " +
			"their bits, put together to bytes.",
	}
	fieldPadding = &dissect.FieldSpec{
		Name: "riptide.padding", Label: "Padding", Kind: dissect.KindUint,
		Doc: "Bits up to the end of the last byte, which mean nothing.",
	}
	fieldOddity = &dissect.FieldSpec{
		Name: "riptide.oddity", Label: "Oddity", Kind: dissect.KindText,
		Doc: "Something that the description of the dialect does not lead one to expect.",
	}
)

var allFields = []*dissect.FieldSpec{
	fieldRiptide, fieldLength, fieldType, fieldSequence, fieldMessageID, fieldLast, fieldAckBits, fieldFlag, fieldCause,
	fieldReason, fieldWord, fieldPing, fieldRTT, fieldClientID, fieldData, fieldPayload, fieldPadding, fieldOddity,
}

// specs maps each header field of the codec to its field here.
var specs = [...]*dissect.FieldSpec{
	wire.FieldType: fieldType, wire.FieldSequence: fieldSequence, wire.FieldMessageID: fieldMessageID,
	wire.FieldLast:    fieldLast,
	wire.FieldAckBits: fieldAckBits, wire.FieldFlag: fieldFlag, wire.FieldCause: fieldCause, wire.FieldReason: fieldReason,
	wire.FieldPing: fieldPing, wire.FieldRTT: fieldRTT, wire.FieldClientID: fieldClientID,
}

func typeEnum() map[uint64]string {
	m := map[uint64]string{}
	for t := wire.Unreliable; t <= wire.AckExtra; t++ {
		m[uint64(t)] = t.String()
	}
	return m
}

// ackBitsNotes says how many ids ack bits name, by that number. It is made once, so that dissecting
// a packet builds no string.
var ackBitsNotes = func() (notes [17]string) {
	for n := range notes {
		notes[n] = strconv.Itoa(n) + " ids named"
	}
	notes[0], notes[1] = "no id named", "1 id named"
	return notes
}()

// prefixNotes describes how the length of a message stands before it, by size and byte order.
var prefixNotes = map[machine.Prefix]string{
	{Bytes: 2}:                  "2 bytes before it, little-endian",
	{Bytes: 2, BigEndian: true}: "2 bytes before it, big-endian",
	{Bytes: 4}:                  "4 bytes before it, little-endian",
	{Bytes: 4, BigEndian: true}: "4 bytes before it, big-endian",
}

func ackBitsNote(v uint64) string { return ackBitsNotes[bits.OnesCount16(uint16(v))] }

// oddities describes each oddity of a message.
var oddities = []struct {
	oddity wire.Oddity
	words  []byte
}{
	{wire.UnreadCause, []byte("names an id although the flag says that none follows: releases 2.1.0 to 2.1.2")},
	{wire.NotesCause, []byte("a third field, which the notes do not have")},
	{wire.NotesHeader, []byte("the ack header of the library in place of the notes' message id")},
	{wire.LongID, []byte("a message id in more groups than it needs")},
	{wire.Padding, []byte("bits behind the last field are not zero")},
	{wire.UnknownReason, []byte("a reason that the dialect does not have")},
	{wire.DataUnasked, []byte("data behind a reason that brings none")},
}

// Package riptide is the codec of Riptide Networking. It reads and writes every message type, field
// and value encoding. It knows every form that the library, its Python port and the Riptide
// Networking Notes give them. Comments call that document the notes.
//
// One datagram is one message; over TCP each message follows a length prefix. There is no magic
// number and no version on the wire. Two forms exist.
//
// Byte-aligned (dialects notes, 2.0, 2.1-dev-d, 2.1-dev-n; offsets in bytes):
//
//	 0      1        3        5
//	+------+--------+--------+----------
//	| type | seq id | msg id | values ...    Reliable (Unreliable has no seq id)
//	+------+--------+--------+----------
//	| type | last   | bits   | [cause]       Ack: 5 or 7 bytes
//	+------+--------+--+-----+--------
//	| type | last   |b | seq    | values ... Notify
//	+------+--------+--+--------+--------
//
// Bit-packed (dialect 2.1; offsets in bits, low bit of a byte first):
//
//	 0      4        20           20 + 8..24
//	+------+--------+------------+----------
//	| type | seq id | msg id     | values ...    Reliable; msg id is a varint
//	+------+--------+------------+----------
//	 0      4        20       36  37       53
//	+------+--------+--------+---+---------+
//	| type | last   | bits   | f | [cause] |    Ack: f says whether cause counts
//	+------+--------+----+---+---+---------+
//	| type | last   |bits8| seq    | values     Notify: 44 bits of header
//	+------+--------+-----+--------+------
//
// All fields are little-endian in published builds; a build of the byte-aligned form can be
// big-endian (Codec.BigEndian). One table holds the differences between dialects (dialects.go),
// another those between builds of one dialect (builds.go).
//
// Sources, checked against captures of the library:
//
//   - the document "Riptide Networking Notes, version 2.1.0", for the notes form;
//   - the library's releases 2.0.0 to 2.2.1;
//   - its development commits e21aef9 and 28a8442.
package riptide

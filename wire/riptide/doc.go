// Package riptide is the codec of Riptide Networking: every message type, field
// and value encoding, in every form that the library, its Python port and the
// notes about it have given them.
//
// One datagram is one message; over TCP each message follows a length prefix.
// There is no magic number and no version on the wire. Two forms exist.
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
// All fields are little-endian as published; a build of the byte-aligned form
// can be big-endian (Codec.BigEndian). What differs between dialects stands in
// one table (dialects.go), what differs between the builds that share a dialect
// in another (builds.go).
//
// Sources of truth: "Riptide Networking Notes, version 2.1.0" (the notes form),
// and the library's releases 2.0.0 to 2.2.1 and development states e21aef9 and
// 28a8442, checked against captures of them.
package riptide

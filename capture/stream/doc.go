// Package stream turns the TCP segments of a connection into messages: it puts
// segments in order, cuts the bytes at their length prefixes, and finds the
// prefixes again where a capture lost bytes or began in the middle.
//
//	segments ──> half (one direction)            ──> framer ─────> messages
//	             |  in order  | hole | pieces |      prefix, body, prefix, ...
//	             ^ next                               2 or 4 bytes
//
// It is our own, and not gopacket/reassembly (which is its oracle in tests),
// since checkpoints clone it (Conn.Clone), every buffer in it is bounded
// (Limits), and each message must tell which frames its bytes came in.
//
// A message's time and frame are those of its last byte: of the frame that put
// the last missing byte of it at the tap, also where it became clear only later
// that a message ends there. Where a hole in the stream was filled late, what
// stood behind the hole could be read only then, and is stamped so.
//
// What a receiver acked and the tap never saw is a gap of the capture. Within a
// message whose prefix was seen it costs that message only; else the framing is
// searched for again: a place from which several prefixes in a row lead to
// prefixes, with messages between them that the protocol can read, weighed in
// bits against chance.
//
// Ring 2 of the house. It knows no protocol: Format.Judge says what it thinks
// of a message.
package stream

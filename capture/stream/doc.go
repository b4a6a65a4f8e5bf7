// Package stream converts the TCP segments of a connection to messages:
//
//	segments ──> half (one direction)            ──> framer ─────> messages
//	             |  in order  | hole | pieces |      prefix, body, prefix, ...
//	             ^ next                               2 or 4 bytes
//
// It works in three steps:
//
//  1. It puts the segments in order.
//  2. It cuts the bytes at their length prefixes.
//  3. It finds the prefixes again where a capture lost bytes or began in the
//     middle.
//
// A message's time and frame are those of the frame that brought its last
// missing byte to the tap. That holds even if only later bytes show that a
// message ends there. If a hole in the stream was filled late, the bytes after
// it could be read only then, and carry that time.
//
// Bytes that the receiver acked and the tap never saw are a gap of the capture.
// A gap within a message whose prefix was seen costs that message only.
// Otherwise the framing is searched for again. For example, a capture begins in
// the middle of a message of 1,000 bytes. The numbers in its body look like
// prefixes, and some lead to other numbers that do. So a search follows each
// chain of messages to the end of the bytes, and compares what is left:
//
//   - One link of a chain is worth as many bits as such places are rare in these
//     bytes. Bytes full of zeros have many.
//   - A segment that begins with a message is worth bits as well.
//   - A chain must be longer than a usual message, or begin each of several
//     segments. Otherwise it may lie within a larger message.
//   - It needs more evidence than any chain that leads elsewhere.
//
// Less is enough for a format that the other direction has shown. A framing that
// fails soon after it was found is given up, and the search begins anew.
//
// The package knows no protocol; a Format weighs its messages. It does not use
// gopacket/reassembly, which is its oracle in tests, for three reasons.
// Checkpoints must clone a connection (Conn.Clone). Every buffer must be
// bounded (Limits). Each message must name the frames that its bytes came in.
package stream

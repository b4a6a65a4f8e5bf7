// Package gaffer is the codec of the Gaffer family: Glenn Fiedler's reliable ordered
// messages, and the libraries that descend from them. A profile says how bytes become
// values and back.
//
// These are the article's header, and reliable's; fragments; and the article's packet
// frame:
//
//	article    [sequence 2][ack 2][ack_bits 4][payload]
//	reliable   [prefix 1][sequence 2][sequence-ack 1 | ack 2][ack_bits 0..4][payload]
//	           prefix: bit 0 fragment, 1-4 byte 0-3 of ack_bits is sent (not 0xff), 5 one-byte ack, 6-7 zero
//	fragment   [0x01][sequence 2][id 1][count-1 1][id 0: the packet's header][data]
//	2017       [0x00][article's header][payload]
//	frame      [crc32 4][header][type][body, bit-packed][pad][end check e2 ac 08 99]
//	netcode    [type 4 bits, n 4 bits][counter n][ciphertext][MAC 16]
//
// In every dialect bit n of ack_bits means ack-n by default. Bit 0 is ack itself, and
// ack alone proves nothing. An endpoint that has received nothing sends the largest
// sequence number as ack, and no bit (Profile.NothingReceived).
//
// Source of truth:
//
//   - "Reliable Ordered Messages", "Packet Fragmentation and Reassembly", "Sending
//     Large Blocks of Data" and "Client Server Connection", with their sample code as
//     of May 2016;
//   - reliable 1.4.0 (reliable.c, not its STANDARD.md, which numbers ack_bits
//     differently);
//   - netcode 1.02.
//
// All of it is checked against captures of these programs.
package gaffer

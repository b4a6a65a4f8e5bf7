// Package srdp is the codec of SRDP, the Scalable Reliable Datagram Protocol of
// Worlds Inc. It reads and writes data packets and acknowledgements in both
// forms, and their framing in the stream to a proxy.
//
// Direct form (offsets in bytes):
//
//	 0         1         3       4
//	+---------+---------+-------+----------
//	| command |0|  id   | flags | bytes ...      data
//	+---------+---------+-------+----------
//	| command |1|  id   |                        acknowledgement
//	+---------+---------+
//
// Proxied form, with the addresses in the same place in both:
//
//	 0         1         3       7      9       13     15      16
//	+---------+---------+-------+------+-------+------+-------+----------
//	| command |0|  id   | source address and   | destination  | flags | bytes ...
//	|         |         | IPv4  | port | IPv4  | port |       |
//	+---------+---------+-------+------+-------+------+-------+----------
//	| command |1|  id   | source       | destination  |                  acknowledgement
//	+---------+---------+-------+------+-------+------+
//
// The top bit of the id says whether a packet is an acknowledgement; the other
// 15 bits are the id. An acknowledgement repeats the id and goes the opposite
// way. In the proxied form its source is therefore the receiver of the data. On
// a stream, the length of each packet precedes it: by default two bytes, high
// byte first.
//
// What the document leaves open is a field of Profile, with a default.
//
// The source is the document of 1995, "Scalable Reliable Datagram Protocol" by
// Worlds Inc. It does not give the layout of the proxied form. Its size section
// counts 16 bytes of header (1+2+1+6+6). Its proxy section wants the addresses
// in the same place in data and acknowledgements. The addresses must then
// precede the flags.
package srdp

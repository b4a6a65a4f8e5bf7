// Package srdp is the codec of SRDP, the Scalable Reliable Datagram Protocol of
// Worlds Inc: data packets and acknowledgements in both forms, and how they
// stand in the stream to a proxy.
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
// The top bit of the id decides what a packet is; ids have the other 15 bits.
// An acknowledgement repeats the id and goes the other way: in the proxied form
// its source is who received the data. On a stream each packet follows its
// length in two bytes, high byte first.
//
// What the document leaves open is a setting of Profile, with a default.
//
// Source of truth: "Scalable Reliable Datagram Protocol", Worlds Inc, 1995. The
// proxied form is a reading of it: its size section counts 16 bytes of header
// (1+2+1+6+6), its proxy section wants the addresses in the same place in data
// and acknowledgements, so they come before the flags.
package srdp

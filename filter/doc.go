// Package filter is the display-filter language: Wireshark's syntax and
// meaning over the fields of ackscope's protocols, of frames and their headers,
// and over what was inferred (flows, events, findings).
//
// Package filter/fields makes the table of the fields; the language knows none of
// them by name.
//
//	text -> lexer -> Pratt parser -> tree -> typed against the field table -> closures -> Match(*Record)
//
// What it means, shortly (Wireshark's filter manual, wireshark-filter(4), is the
// source of truth; the tests hold both against each other):
//
//	gaffer.sequence                     the field is there
//	== eq   !== any_ne                  some value is equal, some differs
//	!= ne   === all_eq                  all values differ, all are equal
//	> gt  >= ge  < lt  <= le            some value is
//	contains   matches ~                bytes or text within; regular expression (Go's syntax, case ignored)
//	in {1, 5..9}   not in {…}           some value is in the set; none is
//	&& and   || or   ^^ xor   ! not     and binds tighter than or
//	any FIELD …   all FIELD …           says which values are meant
//	field[0:2] [4] [2-3] [-4:] [0:2,6]  bytes of a field: offset and length, one, from-to, from the end
//	field & 0x80   field[0] & 0x0f      bits of a number, or of bytes
//	+ - * / %   {…}   -field            sums of numbers, durations and times
//	len() count() upper() lower() string() abs() max() min()
//
// A comparison with a field that a packet does not have is false, whatever the
// operator; so `!(a == 1)` also passes packets without a, and `a != 1` does not.
// A slice that lies outside of the bytes is not there, but is compared as an
// empty byte string; of byte strings the shorter one is less. Both are tshark's.
// Headers within an ICMP error are not looked at, as they are in tshark.
//
// Literals: 10 0x1f 0b101 017 'A', 80ms 2.5s 500us, 1kB 64KiB, 3% (of a share),
// 10.0.0.1 10.0.0.0/8 fe80::1, 0a:1b:2c, "text" with \n \t \" \\ \x00, r"raw",
// true false, and the words of fields that have some. What a literal is follows
// from the field that it is compared with.
//
// A compiled Filter keeps no state and allocates nothing per packet. It decodes
// a packet only where a field of that packet's protocol is asked for.
package filter

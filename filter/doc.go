// Package filter is the display-filter language: Wireshark's syntax and
// semantics over the fields of ackscope. For example,
//
//	flow.rtt > 80ms and gaffer.sequence in {1..9}
//
// There are fields of protocols, of frames and their headers, and of inferred
// facts: flows, events and findings. Package filter/fields builds the table of
// the fields. The language knows none of them by name.
//
//	text -> lexer -> Pratt parser -> tree -> typed against the field table -> closures -> Match(*Record)
//
// A summary of the semantics follows. Wireshark's manual page
// wireshark-filter(4) defines them, and the tests compare both programs:
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
// operator. So `!(a == 1)` passes packets without a, and `a != 1` does not. A
// slice outside the bytes does not exist, but in comparisons it is an empty
// byte string. Of two byte strings the shorter one is less. Both rules are
// tshark's. Unlike tshark, ackscope does not examine headers inside an ICMP
// error.
//
// The type of the field decides what a literal means. These are the literals:
//
//	10 0x1f 0b101 017 'A'        integers
//	80ms 2.5s 500us              durations
//	1kB 64KiB                    sizes
//	3%                           a share
//	10.0.0.1 10.0.0.0/8 fe80::1  addresses and networks
//	0a:1b:2c                     bytes
//	"text" r"raw"                text, with \n \t \" \\ \x00; text without escapes
//	true false                   booleans
//	regular fragment             words of a field that has a list of them
//
// A compiled Filter keeps no state and allocates nothing per packet. It decodes
// a packet only for fields of that packet's protocol.
package filter

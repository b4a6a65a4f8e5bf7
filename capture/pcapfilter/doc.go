// Package pcapfilter compiles capture filters, in the language of tcpdump and
// libpcap, to the kernel's packet filter machine (classic BPF), without libpcap.
//
// What it takes is a subset of pcap-filter(7), and means what libpcap makes of
// it, to the verdict on every packet; what is not in the subset is refused with
// the column, never approximated:
//
//	ip ip6 arp rarp tcp udp sctp icmp icmp6
//	[ip|ip6|ether] proto NUMBER
//	[ip|ip6|arp|rarp] [src|dst|src or dst|src and dst] [host] ADDRESS
//	[ip|ip6|arp|rarp] [src|dst|src or dst|src and dst] net ADDRESS/BITS
//	                                       net ADDRESS mask MASK, net 10.1
//	[tcp|udp|sctp] [src|dst|src or dst|src and dst] port NUMBER
//	[tcp|udp|sctp] [src|dst|src or dst|src and dst] portrange LOW-HIGH
//	vlan [NUMBER]
//	less LENGTH, greater LENGTH
//	not and or ! && || ( )
//
// As in libpcap, `and` and `or` bind equally, from the left; a value may stand
// alone behind one of them, with the qualifiers of the one before ("port 7777
// or 7778"); `port` looks into the first fragment only; and `vlan` moves what
// follows it in the text behind the tag. Names of hosts, networks and ports are
// not looked up.
//
// The kernel takes the outer VLAN tag out of live packets, so a program is made
// for a Target: a file's bytes, or a live socket, where the tag is asked of the
// kernel.
//
// Source: pcap-filter(7) of libpcap 1.10; the verdicts of `tcpdump -ddd` are the
// tests' oracle.
package pcapfilter

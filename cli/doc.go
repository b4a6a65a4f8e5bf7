// Package cli is the command line of ackscope: its commands, flags, output and exit
// codes. A program brings the protocols that it knows:
//
//	func main() {
//		r := protocol.Registry{gaffer.Protocol, mine.Protocol}
//		os.Exit(cli.Main(r, os.Args[1:]))
//	}
//
// What is printed is ruled by the contract in docs/contract.md. The commands stand in
// packages by what they do, which import inward only:
//
//	cli ──> listing, state, replaying, files, simulate, labs, about, terminal
//	          └──> reader ──> privilege
//	                 └──> app
//	protocol ──> simulate, labs: what a protocol brings to the commands
package cli

// Package cli is the command line of ackscope: its commands, flags, output and
// exit codes. A program passes the protocols that it supports:
//
//	func main() {
//		r := protocol.Registry{gaffer.Protocol, mine.Protocol}
//		os.Exit(cli.Main(r, os.Args[1:]))
//	}
//
// `ackscope schema` prints the format of every --json output. The exit codes
// are in package app. The commands are in packages by what they do:
//
//	cli ──> listing, state, replaying, files, simulate, labs, about, terminal
//	          └──> reader ──> privilege
//	                 └──> app
//	protocol ──> simulate, labs: what a protocol adds to the commands
package cli

// Command ackscope analyzes captures of the reliability protocols that games
// run over UDP: it dissects their packets, rebuilds what both sides knew, and
// says why a message was late, resent, duplicated or lost.
//
// This package is the outermost ring: flags, wiring, output and exit codes.
// What it prints is ruled by the contract in docs/contract.md.
package main

import (
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

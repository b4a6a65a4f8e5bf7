// Command ackscope analyzes captures of the reliability protocols that games
// run over UDP: it dissects their packets, rebuilds what both sides knew, and
// says why a message was late, resent, duplicated or lost.
//
// The command line is package cli; here is which protocols it knows, and how the
// collector is set.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/ackscope/ackscope/cli"
)

// gcPercent lets the heap grow by a fifth between collections. In steady state
// nothing is allocated per packet, so collecting more often costs nothing; with
// very many flows it saves a third of the memory.
//
// Until the first collection it may grow to some 20 MB: while it is small, each
// one costs more for the program's own tables than it frees.
const (
	gcPercent      = 20
	gcPercentStart = 300
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercentStart)
		runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, gcPercent)
	}
	os.Exit(cli.Main(registry(), os.Args[1:]))
}

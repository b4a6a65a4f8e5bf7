//go:build !js

// Command ackscope analyzes captures of the reliability protocols that games
// run over UDP. It dissects their packets, rebuilds what both sides knew, and
// says why a message was late, resent, duplicated or lost.
//
// Package cli is the command line. This package lists the protocols and
// configures the garbage collector.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/ackscope/ackscope/cli"
)

// gcPercent lets the heap grow by a fifth between collections. A packet
// allocates nothing in steady state, so collecting more often costs nothing.
// With very many flows it saves a third of the memory.
//
// The heap may grow to some 20 MB before the first collection. A small heap is
// not worth collecting: the program's own tables cost more to scan than a
// collection frees.
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

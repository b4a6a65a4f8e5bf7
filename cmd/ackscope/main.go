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

	"github.com/ackscope/ackscope/cli"
)

func main() {
	if os.Getenv("GOGC") == "" {
		paceCollector()
	}
	os.Exit(cli.Main(registry(), os.Args[1:]))
}

// Command ackscope-fleet brings what many sensors find to one place. See the README of contrib/fleet.
package main

import (
	"os"

	"github.com/ackscope/ackscope/contrib/fleet/command"
)

func main() { os.Exit(command.Main(os.Args[1:], os.Stdout, os.Stderr)) }

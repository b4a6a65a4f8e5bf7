// Command ackscope-beam analyses very many captures with Apache Beam. See the README of contrib/batch.
package main

import (
	"os"

	"github.com/ackscope/ackscope/contrib/batch/command"
)

func main() { os.Exit(command.Main(os.Args[1:], os.Stdout, os.Stderr)) }

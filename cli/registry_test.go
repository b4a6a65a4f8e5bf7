package cli

import (
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
)

// known is what cmd/ackscope brings to the command line.
var known = Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol}

func protocols() *dissect.Registry { return dissect.NewRegistry(known...) }

// run runs one command line and gives the exit code.
func run(args []string, s streams) int { return known.run(args, s) }

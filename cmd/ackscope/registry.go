package main

import (
	"github.com/ackscope/ackscope/cli"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
)

// registry lists every protocol that ackscope knows, in the order in which they
// are tried and shown. A new one takes its packages and one line here.
func registry() cli.Registry {
	return cli.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol}
}

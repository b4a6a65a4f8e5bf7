package main

import "github.com/ackscope/ackscope/cli"

// registry lists every protocol that ackscope knows, in the order in which they
// are tried and shown. A new one takes its packages and one line here.
func registry() cli.Registry {
	return cli.Registry{cli.Gaffer, cli.Riptide, cli.SRDP}
}

package main

import (
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/protocol/gaffer"
	"github.com/ackscope/ackscope/cli/protocol/riptide"
	"github.com/ackscope/ackscope/cli/protocol/srdp"
)

// registry lists every protocol in the order in which they are tried and shown.
// A new protocol needs its packages and one line here.
func registry() protocol.Registry {
	return protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol}
}

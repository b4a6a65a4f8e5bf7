//go:build !js

package srdp

import "github.com/ackscope/ackscope/cli/protocol"

// tools run SRDP on a simulated network and on sockets.
var tools = protocol.Tools{Simulator: &simulator, Lab: &onSockets}

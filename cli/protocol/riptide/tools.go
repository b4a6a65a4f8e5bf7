//go:build !js

package riptide

import "github.com/ackscope/ackscope/cli/protocol"

// tools run Riptide on a simulated network and on sockets.
var tools = protocol.Tools{Simulator: &simulator, Lab: &onSockets}

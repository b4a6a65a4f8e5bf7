//go:build !js

package gaffer

import "github.com/ackscope/ackscope/cli/protocol"

// tools run the Gaffer family on a simulated network and on sockets.
var tools = protocol.Tools{Simulator: &simulator, Lab: &onSockets}

package gaffer

import "github.com/ackscope/ackscope/cli/protocol"

// tools are nothing in a browser.
var tools protocol.Tools

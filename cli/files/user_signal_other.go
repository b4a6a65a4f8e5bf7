//go:build !unix && !js

package files

import "os"

const userSignals = false

// onUserSignal does nothing: this system has no SIGUSR1.
func onUserSignal(chan<- os.Signal) {}

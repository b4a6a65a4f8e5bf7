//go:build !js

package app

import (
	"os"
	"os/signal"
	"syscall"
)

func (a *App) watchSignals() {
	a.signals = make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE} {
		if !signal.Ignored(s) { // nohup and background jobs of scripts ignore signals
			signal.Notify(a.signals, s)
		}
	}
	go func() {
		for s := range a.signals {
			if s != syscall.SIGPIPE {
				a.Outputs.RemoveUnfinished()
				os.Exit(ExitFailed)
			}
		}
	}()
}

// forgetSignals ends what EndOnSignals began.
func (a *App) forgetSignals() {
	if a.signals != nil {
		signal.Stop(a.signals)
		close(a.signals)
	}
}

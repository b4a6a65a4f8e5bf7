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
	signals, watched := a.signals, make(chan struct{})
	a.watched = watched
	go func() {
		defer close(watched)
		for s := range signals {
			if s != syscall.SIGPIPE {
				a.Outputs.RemoveUnfinished()
				os.Exit(ExitFailed)
			}
		}
	}()
}

// forgetSignals ends what EndOnSignals began. From then on, only its caller uses the App.
func (a *App) forgetSignals() {
	if a.signals != nil {
		signal.Stop(a.signals)
		close(a.signals)
		<-a.watched
	}
}

package app

// watchSignals does nothing: a page in a browser receives no signals.
func (a *App) watchSignals() {}

// forgetSignals does nothing: nothing was watched.
func (a *App) forgetSignals() {}

package reader

import "os"

// hangUp does nothing: a page in a browser receives no signals.
func hangUp(chan<- os.Signal) {}

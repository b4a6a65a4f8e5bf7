package cli

import (
	"testing"

	"github.com/ackscope/ackscope/cli/app"
)

// TestMemoryIsGlobal holds that no command takes another --memory than all do.
func TestMemoryIsGlobal(t *testing.T) {
	a := &app.App{Registry: protocols()}
	for _, c := range command(known, a).Commands() {
		if c.LocalNonPersistentFlags().Lookup("memory") != nil {
			t.Errorf("%s has a --memory of its own", c.Name())
		}
	}
}

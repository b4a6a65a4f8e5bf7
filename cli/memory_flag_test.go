package cli

import (
	"testing"

	"github.com/ackscope/ackscope/cli/app"
)

// TestMemoryIsGlobal checks that no command has a --memory of its own.
func TestMemoryIsGlobal(t *testing.T) {
	a := &app.App{Registry: protocols()}
	for _, c := range command(known, a).Commands() {
		if c.LocalNonPersistentFlags().Lookup("memory") != nil {
			t.Errorf("%s has a --memory of its own", c.Name())
		}
	}
}

// Command directjumps rewrites a program that Go has built for WebAssembly, so that most of its jumps
// are direct:
//
//	go run ./internal/directjumps ackscope.wasm
//
// WebAssembly has no goto. So Go makes each function one loop over its sections, which are its basic
// blocks. A jump sets local 0 and goes back to the start of the loop. A table there leads to the
// section:
//
//	loop
//	  block block … block
//	    local.get 0  br_table …
//	  end
//	  …                          section 0
//	  end
//	  …                          section 1: i32.const N, local.set 0, br to the loop
//	  end
//	  …
//
// A browser does not see where such a jump leads. It runs each as a jump over the table, and keeps
// nothing in registers across it. But the end of each block is the start of a section. So a section
// can leave the blocks around it to any later section, by one br. Seven of eight jumps lead forward,
// and become that. Jumps back, and the table for them and for goroutines that go on, stay.
//
// Source: Go 1.26, cmd/internal/obj/wasm/wasmobj.go, preprocess
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "directjumps:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("expected one FILE, which is rewritten")
	}
	before, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	after, jumps, err := rewrite(before)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if jumps.direct == 0 {
		return fmt.Errorf("%s has no jump as Go 1.26 makes them", args[0])
	}
	return os.WriteFile(args[0], after, 0o666) //nolint:gosec // it exists, and keeps its mode
}

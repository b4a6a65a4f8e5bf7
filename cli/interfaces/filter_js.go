package interfaces

import (
	"errors"

	"github.com/ackscope/ackscope/capture/afpacket"
)

// errNoCapture refuses a live capture: a page in a browser has no interfaces. Without it, the page
// would load the compiler of capture filters.
var errNoCapture = errors.New("-i: not in a browser")

func checkFilter(string) error { return errNoCapture }

func readProgram(*afpacket.Options, string) error { return errNoCapture }

package pipeline

import (
	"sync"

	"github.com/ackscope/ackscope/cli/app"
)

// Version returns what identifies the build of this program, which reads itself only once for that.
var Version = sync.OnceValues(app.BuildIdentity)

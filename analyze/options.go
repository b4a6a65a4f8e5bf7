package analyze

import (
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Options configure a session.
type Options struct {
	Registry *dissect.Registry
	DecodeAs []DecodeAs       // the user's overrides; the first match applies
	Vantage  *machine.Vantage // the user's statement of where the tap stood; nil to infer it
	Survey   *Survey          // what an earlier run over the same capture learned; nil if none
	Sink     Sink             // nil if only flows and findings are needed
	Decode   capture.DecodeOptions
	// NoEvents omits events, for a sink that reads only datagrams.
	NoEvents bool
	// NoMessages omits messages that ended, for a sink that reads the other records. NoEvents omits them too.
	NoMessages bool
	// NoRelays omits the findings about messages that an endpoint relays, for a caller that does not read findings.
	NoRelays bool
	// Threads is how many goroutines may analyse at a time; 0 and 1 mean the caller's own. The
	// results are the same for any number. See threads.go.
	Threads int
	// Detached says that the sink reads nothing of a flow that changes while the flow runs. So
	// it may run some packets behind the analysis, and on other goroutines: one call at a time.
	Detached bool
	// Split, if not nil, makes a sink for each group of flows, and replaces Sink. Each of them
	// gets the records of its flows in order. Several may run at a time. Where there is one group
	// and Detached is set, its sink runs some packets behind.
	Split func() Sink
	// Untracked omits the tracker of a flow that the survey knows to be one
	// session. It serves a sink that needs only the datagrams of each flow.
	Untracked bool
	// MaxTrackers bounds the flows with a tracker at one time (default 262,144).
	// Beyond it the flow that was idle longest ends and keeps its summary.
	MaxTrackers int
	Limits      Limits
	// Thresholds are the limits of the rules about steady trouble; nil means the default ones.
	Thresholds *Thresholds
	// Fed, if not nil, is called for each frame of Drive after its records, with
	// the flow of its datagram. The sink sees the frame of a datagram only if the
	// datagram was not held. That is so in a second run, for the flows that the
	// survey knows.
	Fed func(*capture.Frame, *capture.Packet, *Flow)
	// Gone is called for each flow that a limit removes, when its figures are
	// final.
	Gone func(*Flow, Reason)
	// Found is called for each occurrence of a rule, with the finding that it
	// belongs to.
	Found func(*Finding)
}

// defaultMaxTrackers is Options.MaxTrackers where it is 0.
const defaultMaxTrackers = 1 << 18

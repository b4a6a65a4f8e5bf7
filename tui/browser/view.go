package browser

// View names a screen.
type View uint8

// The screens.
const (
	Flows View = iota
	Packets
	State
	Ladder
	Graphs
	Messages
	Findings
	Autopsy
	Replay
	Overview
	viewCount
)

var viewNames = [viewCount]string{
	"flows", "packets", "state", "ladder", "graphs", "messages", "findings",
	"autopsy", "replay", "overview",
}

func (v View) String() string { return viewNames[v] }

package report

import "github.com/ackscope/ackscope/dissect"

var (
	emptyRegistry = dissect.NewRegistry()
	emptyProtocol = &dissect.Protocol{Name: "toy"}
)

//go:build !js

package protocol

import (
	"github.com/ackscope/ackscope/cli/labs"
	"github.com/ackscope/ackscope/cli/simulate"
)

// Tools are the endpoints that a protocol can run.
type Tools struct {
	Simulator *simulate.Simulator // for simulate
	Lab       *labs.Protocol      // for lab
}

// Simulators returns the simulators of the protocols that have one.
func (r Registry) Simulators() (list simulate.Simulators) {
	for i := range r {
		if r[i].Simulator != nil {
			list = append(list, r[i].Simulator)
		}
	}
	return list
}

// Labs returns the labs of the protocols that have one.
func (r Registry) Labs() (list []*labs.Protocol) {
	for i := range r {
		if r[i].Lab != nil {
			list = append(list, r[i].Lab)
		}
	}
	return list
}

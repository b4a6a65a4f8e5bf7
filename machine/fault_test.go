package machine_test

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
)

func TestLookupFault(t *testing.T) {
	type slip struct {
		machine.Fault
		deaf bool
	}
	table := []*slip{{Fault: machine.Fault{Name: "ack-missing"}}, {Fault: machine.Fault{Name: "deaf"}, deaf: true}}
	if f := machine.LookupFault(table, "deaf"); f != table[1] {
		t.Errorf("deaf is %+v", f)
	}
	if f := machine.LookupFault(table, "Deaf"); f != nil {
		t.Errorf("no fault has the name Deaf, and %+v was found", f)
	}
}

package main

import (
	"slices"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/protocols"
)

// TestRegistryIsTheDefaultOne: the command line and package protocols list the same protocols in
// the same order.
func TestRegistryIsTheDefaultOne(t *testing.T) {
	var names []string
	for _, p := range protocols.Default().Protocols() {
		names = append(names, p.Name)
	}
	if !slices.EqualFunc(registry().Descriptors().Protocols(), protocols.Default().Protocols(),
		func(x, y *dissect.Protocol) bool { return x == y }) {
		t.Errorf("the command line lists other protocols than %v", names)
	}
}

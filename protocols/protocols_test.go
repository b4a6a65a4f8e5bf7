package protocols

import (
	"testing"
)

// TestNew: options add to the protocols, and a wrong one is an error.
func TestNew(t *testing.T) {
	set, err := New(Options{DecodeAs: []string{"udp.port==7777,gaffer"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.DecodeAs) != 1 || set.DecodeAs[0].Port != 7777 || set.DecodeAs[0].Protocol.Name != "gaffer" {
		t.Errorf("the override is %+v", set.DecodeAs)
	}
	if got, want := len(set.Registry.Protocols()), len(Default().Protocols()); got != want {
		t.Errorf("%d protocols, expected %d", got, want)
	}
	if _, err := New(Options{DecodeAs: []string{"udp.port==7777,nothing"}}); err == nil {
		t.Error("a protocol that does not exist is no error")
	}
	if _, err := New(Options{Keys: &File{Path: "absent.yaml"}}); err == nil {
		t.Error("a file that does not exist is no error")
	}
}

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
)

// TestCapturesAreTheirProtocols: with all protocols in the race, every flow of a
// capture of one protocol is that protocol's or nobody's, and Riptide's are all
// found.
func TestCapturesAreTheirProtocols(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/pcaps/*.pcap*.gz")
	if err != nil || len(paths) < 200 {
		t.Fatalf("%d captures, %v", len(paths), err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "u210_rwrap") && testing.Short() {
			continue
		}
		in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepPipes})
		if err != nil {
			t.Fatal(err)
		}
		s, err := analyze.Run(in, analyze.Options{Registry: protocols()})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		want := "gaffer"
		if strings.HasPrefix(name, "u") || strings.HasPrefix(name, "t") {
			want = "riptide"
		}
		for _, f := range s.Flows() {
			switch {
			case f.Protocol == nil && want == "riptide":
				t.Errorf("%s flow %d: not found to be Riptide: %s", name, f.ID, f.Verdict.Reason)
			case f.Protocol != nil && f.Protocol.Name != want:
				t.Errorf("%s flow %d: taken for %s: %s", name, f.ID, f.Protocol.Name, f.Verdict.Reason)
			}
		}
	}
}

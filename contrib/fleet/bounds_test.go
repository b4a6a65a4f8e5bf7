package fleet_test

import (
	"testing"
	"time"
)

// TestBoundOfFlows: a sensor keeps its bounds, as "ackscope capture" does. Beyond --max-flows the flow that was silent
// longest ends, and its row says why.
func TestBoundOfFlows(t *testing.T) {
	f := newFleet(t, 1, []string{"eu"})
	collector := f.collector()
	s := start(t, "program", "sensor", "--site", "eu", "--name", "host-1", "-r",
		"../../testdata/pcaps/reliable-two-clients.server.pcap.gz", "--max-flows", "1", "--memory", "64MiB", "--hub", f.url(),
		"--key", f.key("eu"), "--spool", f.file("spool"))
	if err := s.wait(time.Minute); err != nil {
		t.Fatal(err)
	}
	type flow struct {
		Ended string `parquet:"ended"`
	}
	ended := 0
	until(t, time.Minute, func() bool {
		ended = 0
		for _, x := range readFiles[flow](t, f.file("tables"), "flows") {
			if x.Ended == "flows" {
				ended++
			}
		}
		return ended > 0
	})
	if err := collector.stop(); err != nil {
		t.Error(err)
	}
}

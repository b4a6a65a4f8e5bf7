package hostcauses

import (
	"bytes"
	"context"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/live"
	"github.com/ackscope/ackscope/protocols"
)

// beginLive begins an analysis of veth0 by package live, with a probe, as other programs make it. The function that
// it returns ends the analysis, and returns the findings as JSON Lines.
func beginLive(t *testing.T) (end func() []byte) {
	t.Helper()
	group, err := afpacket.OpenGroup([]afpacket.Options{{Interface: "veth0", Filter: "udp or icmp"}})
	if err != nil {
		t.Fatal(err)
	}
	var rows bytes.Buffer
	lines := export.NewRows(export.Findings, export.NewLines(&rows, &export.Findings.Schema))
	samples := 0
	run := live.New(group, live.Options{
		Analysis: analyze.Options{Registry: protocols.Default(), Limits: analyze.LiveLimits},
		Ended: func(f *analyze.Flow, _ live.Why) {
			for _, x := range f.Findings() {
				if err := lines.Add(&export.FindingRow{Finding: x}); err != nil {
					t.Error(err)
				}
			}
		},
		Dropped: func() uint64 { return live.Dropped(group) },
		Probe:   live.NewProbe(),
		Sampled: func(*host.Sample) error { samples++; return nil },
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run.Run(ctx) }()
	return func() []byte {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := group.Close(); err != nil {
			t.Error(err)
		}
		if samples < 2 {
			t.Errorf("%d samples in three seconds", samples)
		}
		return rows.Bytes()
	}
}

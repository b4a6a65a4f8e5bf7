package truth

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// flow is the part of a line of `flows --json` that the tests check.
type flow struct {
	Protocol string   `json:"protocol"`
	A        addrPort `json:"a"`
	B        addrPort `json:"b"`
	RTTa     *float64 `json:"rtt_ms_a"`
	RTTb     *float64 `json:"rtt_ms_b"`
	LossA    *float64 `json:"loss_a"`
	LossB    *float64 `json:"loss_b"`
	AckedA   *int     `json:"acked_a"`
	AckedB   *int     `json:"acked_b"`
}

type estimate struct {
	rtt, loss *float64
	acked     *int
}

func (f *flow) side(at netip.AddrPort) (self, peer estimate) {
	a, b := estimate{f.RTTa, f.LossA, f.AckedA}, estimate{f.RTTb, f.LossB, f.AckedB}
	if f.A.AddrPort == at {
		return a, b
	}
	return b, a
}

// TestEstimates: RTT and loss are those that the library computed, and acked
// packets are counted correctly. Only `reliable` 1.4.0 logs these estimates.
func TestEstimates(t *testing.T) {
	testenv.Grid(t, "the state at every logged moment")
	program := testenv.Ackscope(t)
	for _, c := range captures(t) {
		if !strings.HasPrefix(c.name, "reliable-") {
			continue
		}
		t.Run(c.name+"."+c.tap, func(t *testing.T) {
			c.span(t)
			flows, err := decode[flow](testenv.Output(t, program, "flows", "--json", c.path))
			if err != nil {
				t.Fatal(err)
			}
			r := readRun(t, c.name)
			compared := 0
			for _, f := range flows {
				if f.Protocol != "gaffer" {
					continue
				}
				endpoint, conn, at, ok := r.near(c.tap, f.A.AddrPort, f.B.AddrPort)
				if !ok {
					t.Errorf("flow between %v and %v: no endpoint of the run", f.A, f.B)
					continue
				}
				compared++
				self, peer := f.side(at)
				for _, fault := range append(checkEstimate(r, &c, endpoint, conn, true, self),
					checkEstimate(r, &c, other(endpoint), r.farConn(endpoint, conn), false, peer)...) {
					t.Error(fault)
				}
			}
			ends := 0
			for k := range r.by {
				if k.event == "final" && (k.endpoint == c.tap || r.loopback() && k.endpoint != "relay") {
					ends++
				}
			}
			if compared != ends {
				t.Errorf("%d flows compared, the log has %d connections at this tap", compared, ends)
			}
		})
	}
}

func checkEstimate(r *run, c *captured, endpoint string, conn int, near bool, got estimate) (faults []string) {
	log := func(event string) []line { return r.by[who{endpoint, conn, event}] }
	finals, acks := log("final"), log("acked")
	if len(finals) == 0 || finals[0].PacketLoss == nil {
		return []string{fmt.Sprintf("%s conn %d: the log has no final figures", endpoint, conn)}
	}
	final, frame := finals[len(finals)-1], 1000/r.pps(endpoint)

	// The frames of the near endpoint are its own sends. The error is 0.35 ms if
	// the last acks came after its last send. The frames of the far endpoint are
	// seen through jitter, and its first sample, which is not smoothed, may be
	// one frame off.
	tolerance, lossTolerance := 0.5, 1.2/128
	if !near {
		tolerance, lossTolerance = 0.5+0.1*frame, 5.0/128
		if len(acks) < 100 {
			tolerance += frame
		}
	}
	if r.params["event"] != "" {
		tolerance += frame // the library's clock ran at every arrival, which no packet shows
	}
	if len(log("logging_starts")) > 0 {
		// What it had smoothed before the capture fades by 0.9975 with each sample.
		start, left, widest := log("stats")[0], 1.0, 0.0
		for i, l := range acks {
			if l.T > start.T {
				left *= 0.9975
			}
			if i >= len(acks)/2 {
				widest = max(widest, math.Abs(start.RTT-l.RTTms))
			}
		}
		tolerance += 1.2 * left * widest
	}
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s conn %d (near %v): ", endpoint, conn, near)+fmt.Sprintf(format, args...))
	}
	if got.rtt == nil || math.Abs(*got.rtt-final.RTT) > tolerance {
		fault("RTT %s ms, the log has %.2f, allowed within %.2f", show(got.rtt), final.RTT, tolerance)
	}
	if loss := *final.PacketLoss / 100; got.loss == nil || math.Abs(*got.loss-loss) > lossTolerance {
		fault("loss %s, the log has %.4f, allowed within %.4f", show(got.loss), loss, lossTolerance)
	}
	if near {
		sent, want := map[int]bool{}, 0
		for _, l := range log("sent") {
			sent[l.Seq] = true
		}
		for _, l := range acks {
			if sent[l.Seq] && l.T <= c.last+1.5/r.pps(endpoint) {
				want++
			}
		}
		if got.acked == nil || *got.acked != want {
			fault("acked %s, the log has %d", show(got.acked), want)
		}
	}
	return faults
}

func show[T any](v *T) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(*v)
}

package gaffer

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// truthFile says how the truth is written: as beside the recorded captures.
func (c *gafferCast) truthFile() sim.TruthFile {
	f := c.flags
	first, _ := simulate.Pair(f.First, strconv.Atoi)
	return sim.TruthFile{
		Epoch: simulate.Epoch,
		Scenario: map[string]any{
			"name": "simulated", "client_addr": simulate.Addrs[0].Addr().String(), "client_ports": []uint16{simulate.Addrs[0].Port()},
			"server_addr": simulate.Addrs[1].Addr().String(), "server_port": simulate.Addrs[1].Port(), "params": f.Params(),
		},
		Name: func(h *sim.Host) string { return h.Name },
		Opening: func(h *sim.Host) (lines []map[string]any) {
			if first[h.Index] != 0 {
				lines = append(lines, map[string]any{"event": "logging_starts", "next_seq": first[h.Index]})
			}
			if h.Index == 1 {
				lines = append(lines, map[string]any{"event": "peer", "addr": simulate.Addrs[0].Addr().String(), "port": simulate.Addrs[0].Port()})
			}
			return lines
		},
		Describe: func(fact *sim.Fact, line map[string]any) {
			var p wire.Packet
			if fact.Event.Kind != machine.EventSent {
				return
			}
			if err := c.profile.Parse(fact.Head, fact.Length, &p); p.HasHeader && (err == nil || p.HeaderLen > 0) {
				line["ack"], line["ack_bits"] = p.Header.Ack, fmt.Sprintf("%08x", p.Header.AckBits)
				line["hex"] = hex.EncodeToString(fact.Head[:min(len(fact.Head), p.HeaderOffset+p.HeaderLen)])
			}
		},
		Final: func(h *sim.Host, line map[string]any) {
			var v machine.View
			h.Endpoint().Inspect(&v)
			for _, g := range v.Gauges {
				line[g.Name] = g.Value
			}
		},
	}
}
